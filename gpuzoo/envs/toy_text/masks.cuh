// Conditions as masks, -1 or 0, of numbers that are not negative. Compilers make branches of comparisons that depend on
// each other; of these they cannot, so that a loop over envs is vectorised.
GZ int less(int a, int b) { return (a - b) >> 31; }
GZ int equal(int a, int b) { return ((a ^ b) - 1) >> 31; }
GZ int choose(int condition, int yes, int no) { return no ^ ((yes ^ no) & condition); }

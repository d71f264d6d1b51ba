// Where a capsule and a cylinder touch. MuJoCo searches that by its general algorithms of convex shapes (`mjc_Convex`),
// whose limit this is: the nearest points of the capsule's segment and the cylinder by Newton's method on a convex
// function of one number, and where they overlap the shortest way out, which is one of few. Where the nearest point is of
// a cap and the capsule lies nearly along it, there are two contacts, by the rule of MuJoCo 4.0.0.
namespace convex {
struct Triple {
  Vec x, y, z;
};
GZ Triple operator+(Triple a, Triple b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
GZ Triple operator-(Triple a, Triple b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
GZ Triple operator*(Triple a, Vec s) { return {a.x * s, a.y * s, a.z * s}; }
GZ Vec dot(Triple a, Triple b) { return fma(a.x, b.x, fma(a.y, b.y, a.z * b.z)); }
GZ Triple cross(Triple a, Triple b) {
  return {fma(a.y, b.z, -(a.z * b.y)), fma(a.z, b.x, -(a.x * b.z)), fma(a.x, b.y, -(a.y * b.x))};
}
GZ Triple choose(PackMask m, Triple a, Triple b) {
  return {select(m, a.x, b.x), select(m, a.y, b.y), select(m, a.z, b.z)};
}
GZ Vec sign(Vec x) { return select(less(x, num(0.0)), num(-1.0), num(1.0)); }
GZ Vec clip(Vec x, Vec size) { return max(min(x, size), -size); }
GZ Triple unit(Triple a) { return a * (num(1.0) / sqrt(max(dot(a, a), num(1e-30)))); }

struct Sizes {
  Vec radius, cylinder, height;  // of the capsule; of the cylinder, and half its height
};
struct Meeting {
  Vec distance;  // of the surfaces
  Triple point, normal;  // in the middle; from the capsule to the cylinder
  PackMask capped;       // the cylinder's point is of a cap or of its rim
};

// The derivative of half the squared distance from a point of the segment to the cylinder, and its own derivative.
struct Line {
  Vec cz, az, cc, ac, aa;  // centre and half segment along the cylinder's axis; products of what is across it
};
GZ Vec slope(const Line &l, const Sizes &size, Vec s, Vec &curvature) {
  const Vec z = fma(s, l.az, l.cz), inward = fma(s, l.aa, l.ac);
  const Vec square = fma(s, inward + l.ac, l.cc), rho = sqrt(max(square, num(1e-30)));
  const PackMask beside = less(size.cylinder, rho), beyond = less(size.height, abs(z));
  const Vec part = size.cylinder / rho, turned = inward / rho;
  curvature = select(beside, fma(num(1.0) - part, l.aa, part * turned * turned), num(0.0)) +
              select(beyond, l.az * l.az, num(0.0));
  return select(beside, (num(1.0) - part) * inward, num(0.0)) + (z - clip(z, size.height)) * l.az;
}

// Where on the segment, from -1 to 1, it is nearest to the cylinder.
GZ Vec nearest(const Line &l, const Sizes &size) {
  const Vec rounding = num(sizeof(Real) == 4 ? 1e-7 : 1e-16);
  Vec curvature, low = num(-1.0), high = num(1.0), s = num(0.0);
  const PackMask first = !less(slope(l, size, low, curvature), num(0.0));
  const PackMask last = !less(num(0.0), slope(l, size, high, curvature));
  PackMask done = first | last;
  GZ_ROLLED for (int n = 0; n < 40; ++n) {
    const Vec f = slope(l, size, s, curvature);
    low = select(less(f, num(0.0)), s, low);
    high = select(less(num(0.0), f), s, high);
    const Vec newton = s - f / max(curvature, num(1e-30));
    const Vec next = select(less(low, newton) & less(newton, high), newton, (low + high) * num(0.5));
    const PackMask still = !less(rounding, abs(next - s)) | !(less(f, num(0.0)) | less(num(0.0), f));
    s = select(done | still, s, next);
    done = done | still;
    if (all(done)) break;
  }
  return select(first, num(-1.0), select(last, num(1.0), s));
}

// The shortest way out of the cylinder for a segment that is in it: along m, by the depth, from a point at.
struct Exit {
  Vec depth;
  Triple along, at;
  PackMask capped;
};
GZ Vec depth_along(Triple m, Triple c, Triple a, Triple axis, const Sizes &size) {
  const Vec z = dot(m, axis);
  return fma(size.cylinder, sqrt(max(num(1.0) - z * z, num(0.0))), size.height * abs(z)) - dot(m, c) + abs(dot(m, a));
}
GZ void consider(Exit &best, PackMask possible, bool capped, Triple m, Triple at, Triple c, Triple a, Triple axis,
                 const Sizes &size) {
  const Vec depth = depth_along(m, c, a, axis, size);
  const PackMask better = possible & less(depth, best.depth);
  best.depth = select(better, depth, best.depth);
  best.along = choose(better, m, best.along);
  best.at = choose(better, at, best.at);
  best.capped = (best.capped & !better) | (better & PackMask(capped));
}
constexpr Real sixteenth = Real(0.19634954084936207);  // of half a turn
// Across the segment, out over the rim. Seen along the segment the rim is an ellipse of half axes R and R k.
GZ void over_the_rim(Exit &best, Triple c, Triple a, Triple axis, const Line &l, const Sizes &size) {
  const Vec tiny = num(1e-12), length = sqrt(fma(l.az, l.az, l.aa)), across = sqrt(max(l.aa, num(1e-30)));
  const Vec k = abs(l.az) / length, w = across / length;
  Triple e1 = cross(axis, a) * (num(1.0) / across);
  e1 = e1 * sign(dot(e1, c));
  Triple e2 = (axis - a * (l.az / (length * length))) * (length / across);
  const Vec upward = sign(dot(e2, c));
  e2 = e2 * upward;
  const Vec x = dot(e1, c), y = dot(e2, c), pull = k * fma(size.height, w, -y), oval = size.cylinder * w * w;
  // The derivative of the squared distance to the ellipse at an angle is below 0 from somewhere on to the nearest point.
  // It is looked at all over the quarter, and near its begin, where that of a flat ellipse may be.
  Vec low = num(0.0), high = num(1.5707963267948966), s, t;
  PackMask found = PackMask(false);
  Vec from = num(0.0), near = k * num(0.125);
  GZ_ROLLED for (int n = 0; n < 15; ++n) {
    const Vec angle = n < 8 ? from : min(near, high);
    sincos(angle, s, t);
    const PackMask falls = less(fma(x, s, pull * t) - oval * s * t, num(0.0));
    low = select(falls, max(low, angle), low);
    found = found | falls;
    from = from + num(sixteenth);
    near = n < 8 ? near : near * num(2.0);
  }
  from = num(sixteenth), near = k * num(0.125);
  GZ_ROLLED for (int n = 0; n < 7; ++n) {
    high = select(less(low, from), min(from, high), high);
    high = select(less(low, near), min(near, high), high);
    from = from + num(sixteenth), near = near * num(2.0);
  }
  found = found & less(tiny, l.aa);
  Vec angle = (low + high) * num(0.5);
  GZ_ROLLED for (int n = 0; n < (sizeof(Real) == 4 ? 16 : 48); ++n) {
    sincos(angle, s, t);
    const Vec f = fma(x, s, pull * t) - oval * s * t;
    low = select(less(f, num(0.0)), angle, low);
    high = select(less(f, num(0.0)), high, angle);
    const Vec newton = angle - f / (fma(x, t, -(pull * s)) - oval * (t * t - s * s));
    angle = select(less(low, newton) & less(newton, high), newton, (low + high) * num(0.5));
  }
  sincos(angle, s, t);
  const Triple m = unit(e1 * (k * t) + e2 * s);
  const Triple outward = (axis * l.az - a) * (upward * sign(l.az) / across);  // across the axis, towards e2
  const Triple level = outward - axis * dot(outward, axis);
  const Triple rim = (e1 * t + level * s) * size.cylinder + axis * (size.height * upward);
  const Vec place = clip(dot(rim - c, a) / (length * length), num(1.0));
  consider(best, found, true, m, c + a * place, c, a, axis, size);
}
GZ Exit way_out(Triple c, Triple a, Triple axis, const Line &l, const Sizes &size) {
  const Vec tiny = num(1e-12);
  const Triple up = axis * sign(l.cz), level = c - axis * l.cz, half = a - axis * l.az;
  Exit best = {num(1e30), up, c, PackMask(true)};
  consider(best, PackMask(true), true, up, c - a * sign(dot(up, a)), c, a, axis, size);
  for (int end = -1; end <= 1; end += 2) {
    const Triple out = level + half * num(end);
    consider(best, less(tiny, dot(out, out)), false, unit(out), c + a * num(end), c, a, axis, size);
  }
  Triple aside = cross(axis, half) * (num(1.0) / sqrt(max(l.aa, num(1e-30))));
  aside = aside * sign(dot(aside, c));
  const Vec foot = clip(-(l.ac / max(l.aa, num(1e-30))), num(1.0));
  consider(best, less(tiny, l.aa), false, aside, c + a * foot, c, a, axis, size);
  over_the_rim(best, c, a, axis, l, size);
  return best;
}

// A segment of half `a`, whose centre is at `c` from the cylinder's, with a radius.
GZ_SELDOM void meet(Meeting &out, Triple c, Triple a, Triple axis, const Sizes &size) {
  const Vec cz = dot(c, axis), az = dot(a, axis);
  const Triple level = c - axis * cz, half = a - axis * az;
  const Line l = {cz, az, dot(level, level), dot(level, half), dot(half, half)};
  const Triple p = c + a * nearest(l, size);
  const Vec z = dot(p, axis);
  const Triple across = p - axis * z;
  const Vec shrink = min(size.cylinder / sqrt(max(dot(across, across), num(1e-30))), num(1.0));
  const Triple way = (across * shrink + axis * clip(z, size.height)) - p;
  const Vec distance = sqrt(dot(way, way));
  const PackMask apart = less(num(Physics::CROSSING), distance);
  out.normal = way * (num(1.0) / select(apart, distance, num(1.0)));
  out.distance = distance - size.radius;
  out.point = p + way * num(0.5) + out.normal * (size.radius * num(0.5));
  out.capped = less(size.height, abs(z));
  if (all(apart)) return;
  const Exit way_of = way_out(c, a, axis, l, size);
  out.normal = choose(apart, out.normal, way_of.along * num(-1.0));
  out.distance = select(apart, out.distance, -(way_of.depth + size.radius));
  out.point = choose(apart, out.point, way_of.at + way_of.along * ((way_of.depth - size.radius) * num(0.5)));
  out.capped = (apart & out.capped) | (!apart & way_of.capped);
}

// How far a capsule's axis may rise from a cap for two contacts, as a sine.
constexpr double LEVEL = 0.0888;

// The part of a line from p by d, from 0 to 1, that lies above a cap, which counts as a polygon of 16 corners.
GZ PackMask above_cap(Vec &first, Vec &last, Triple p, Triple d, Triple x, Triple y, Vec radius) {
  const Vec px = dot(p, x), py = dot(p, y), dx = dot(d, x), dy = dot(d, y);
  PackMask outside = PackMask(false);
  first = num(0.0), last = num(1.0);
  GZ_ROLLED for (int side = 0; side < 16; ++side) {
    Vec s, c;
    sincos(vec(Pack(Real(2 * side + 1) * sixteenth)), s, c);
    const Vec rate = fma(dx, c, dy * s), room = radius * num(0.98078528040323044) - fma(px, c, py * s);
    const PackMask leaves = less(num(0.0), rate), enters = less(rate, num(0.0));
    const Vec at = room / select(leaves | enters, rate, num(1.0));
    last = select(leaves, min(last, at), last);
    first = select(enters, max(first, at), first);
    outside = outside | (!leaves & !enters & less(room, num(0.0)));
  }
  return !outside & !less(last, first);
}

// Up to two contacts. Each is 7 numbers, distance, point and normal; where there is none, the distance is 1e10.
// `capsule` is its centre and unit axis, `cylinder` its centre, axis and an axis across; `sizes` are radius and half length
// of the capsule, of the cylinder, and the margin.
GZ_SELDOM void capsule_cylinder(Vec *out, const Vec *capsule, const Vec *cylinder, const Vec *sizes) {
  const Triple centre = {cylinder[0], cylinder[1], cylinder[2]}, axis = {cylinder[3], cylinder[4], cylinder[5]};
  const Triple along = {capsule[3], capsule[4], capsule[5]}, x = {cylinder[6], cylinder[7], cylinder[8]};
  const Triple apart = Triple{capsule[0], capsule[1], capsule[2]} - centre;
  const Vec margin = sizes[4], length = sizes[1];
  const Sizes size = {sizes[0], sizes[2], sizes[3]};
  Meeting found;
  meet(found, apart, along * length, axis, size);
  const PackMask hit = less(found.distance, margin);
  Vec distance[2] = {select(hit, found.distance, num(1e10)), num(1e10)};
  Triple point[2] = {found.point, found.point}, normal = found.normal;
  const PackMask level = hit & found.capped & less(abs(dot(along, axis)), num(LEVEL));
  if (any(level)) {
    // The line of the capsule's surface that faces the cylinder, grown by half of the margin, as the cap is.
    const Triple surface = found.point + found.normal * ((margin - found.distance) * num(0.5));
    const Triple begin = surface + along * (dot(apart - surface, along) - length), way = along * (length * num(2.0));
    const Triple up = axis * sign(-dot(normal, axis));  // also where the capsule is past the cylinder's middle
    Vec at[2], height[2];
    const PackMask meets = level & above_cap(at[0], at[1], begin, way, x, cross(axis, x), size.cylinder);
    Triple place[2];
    for (int k = 0; k < 2; ++k) {
      place[k] = begin + way * at[k];
      height[k] = dot(place[k], up) - size.height + margin * num(0.5);
      place[k] = place[k] + up * ((margin - height[k]) * num(0.5));
    }
    // A corner of the clipped line counts twice; so one is still two where the other is too high.
    const PackMask low[2] = {meets & less(height[0], margin), meets & less(height[1], margin)};
    const PackMask second = low[1] & (low[0] | less(at[1], num(1.0))), first = low[0] & (low[1] | less(num(0.0), at[0]));
    const PackMask either = low[0] | low[1];
    normal = choose(either, up * num(-1.0), normal);
    distance[1] = select(first & second, height[1], select(first, height[0], select(second, height[1], num(1e10))));
    point[1] = choose(second, place[1], place[0]);
    distance[0] = select(low[0], height[0], select(low[1], height[1], distance[0]));
    point[0] = choose(low[0], place[0], choose(low[1], place[1], point[0]));
  }
  for (int k = 0; k < 2; ++k) {
    const Triple p = point[k] + centre;
    const Vec numbers[7] = {distance[k], p.x, p.y, p.z, normal.x, normal.y, normal.z};
    for (int i = 0; i < 7; ++i) out[7 * k + i] = numbers[i];
  }
}
}  // namespace convex

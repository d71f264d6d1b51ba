"""MuJoCo's step as generated rules: a model's constants in, text of the packed dialect out.

One module per stage, in the order of MuJoCo's documentation, chapter "Computation":

    model        the constants of a compiled model, by MuJoCo's names; `mjcf` extracts them
    kinematics   frames of bodies, motion axes, velocities
    inertia      composite inertia, the mass matrix and its factorisation
    bias         forces of gravity and of velocity (recursive Newton-Euler)
    tendon       lengths of tendons and their Jacobians
    passive      springs, dampers, fluid
    actuation    from controls to forces
    collision    where geoms touch
    constraint   impedance, reference accelerations, limits of joints and tendons
    contact      which contacts share their code, and which are listed; `group`: their constraints
    solver       Newton's method with line search
    integrator   Euler with implicit damping, RK4
    watched      quantities that rules read
    generate     all of it put together

`expressions` turns Python arithmetic into straight-line code.
"""

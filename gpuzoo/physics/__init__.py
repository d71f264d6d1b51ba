"""MuJoCo's step as generated rules: a model's constants in, text of the packed dialect out.

One module per stage, in the order of MuJoCo's documentation, chapter "Computation":

    model        the constants of a compiled model, by MuJoCo's names; `mjcf` extracts them
    kinematics   frames of bodies, motion axes, velocities
    inertia      composite inertia, the mass matrix and its factorisation
    bias         forces of gravity and of velocity (recursive Newton-Euler)
    passive      springs, dampers, fluid
    actuation    from controls to forces
    collision    where geoms touch
    constraint   impedance, reference accelerations, joint limits
    contact      constraints of contacts
    solver       Newton's method with exact line search
    integrator   Euler with implicit damping, RK4
    generate     all of it put together

`expressions` turns Python arithmetic into straight-line code.
"""

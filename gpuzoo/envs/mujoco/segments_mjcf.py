"""The models of robots of many segments, in MJCF."""

from __future__ import annotations

_LOOKS = """<asset>
<texture type="skybox" builtin="gradient" rgb1="1 1 1" rgb2="0 0 0" width="100" height="100"/>
<texture name="squares" type="2d" builtin="checker" rgb1="0 0 0" rgb2=".8 .8 .8" width="100" height="100"/>
<material name="squares" texture="squares" texrepeat="60 60" specular="1" shininess="1" reflectance=".5"/>
</asset>"""
_LIGHT = '<light directional="true" cutoff="100" pos="0 0 1.3" dir="0 0 -1.3" diffuse="1 1 1" specular=".1 .1 .1"/>'
_FLOOR = '<geom name="floor" type="plane" condim="3" material="squares" rgba=".8 .9 .8 1"'


def swimmer(segments: int) -> str:
    """A chain of links with this many joints, at least 2."""
    link = '<geom type="capsule" size=".1" density="1000" fromto="{} 0 0 {} 0 0"/>'
    body = ""
    for k in range(segments):
        way = -1 if k % 2 == 0 and 0 < k < segments - 1 else 1
        body += f"""<body name="{f"mid{k}" if k < segments - 1 else "back"}" pos="{-1 if k else 0.5} 0 0">
{link.format(0, -1)}<joint name="rot{k}" axis="0 0 {way}" limited="true" range="-100 100"/>
"""
    motors = "\n".join(
        f'<motor joint="rot{k}" gear="150" ctrllimited="true" ctrlrange="-1 1"/>' for k in range(segments)
    )
    return f"""<mujoco model="swimmer"><compiler angle="degree" inertiafromgeom="true"/>
<option timestep="0.01" integrator="RK4" density="4000" viscosity="0.1"/>{_LOOKS}
<default><geom contype="0" conaffinity="0" condim="1" rgba=".8 .6 .4 1"/><joint armature=".1"/></default>
<worldbody>{_LIGHT}{_FLOOR} pos="0 0 -.1" size="40 40 .1"/>
<body name="torso"><camera name="track" mode="trackcom" pos="0 -3 3" xyaxes="1 0 0 0 1 1"/>{link.format(1.5, 0.5)}
<joint name="slider1" type="slide" axis="1 0 0"/><joint name="slider2" type="slide" axis="0 1 0"/><joint name="rot"/>
{body}{"</body>" * segments}</body></worldbody>
<actuator>{motors}</actuator></mujoco>"""


def _leg(name: str, hip: str, ankle: str, foot: str, axis: str, bent: str) -> str:
    """A leg: from the torso to its hip, on to its ankle and its foot."""
    bone = '<geom type="capsule" size=".08" fromto="0 0 0 {} 0"/>'
    return f"""<body name="leg{name}">{bone.format(hip)}
<body name="upper{name}" pos="{hip} 0"><joint name="hip{name}" axis="0 0 1" range="-30 30"/>{bone.format(ankle)}
<body name="lower{name}" pos="{ankle} 0"><joint name="ankle{name}" axis="{axis} 0" range="{bent}"/>{bone.format(foot)}
</body></body></body>
"""


def ant(segments: int) -> str:
    """A row of torsos, each with two legs."""
    torsos, motors = "", ""
    for k in range(segments):
        if k:
            torsos += f'<body name="torso_{k}" pos="-1 0 0">'
            torsos += '<geom type="capsule" size=".1" density="100" fromto="1 0 0 0 0 0"/>\n'
            torsos += _leg(f"1_{k}", "0 .2", "-.2 .2", "-.4 .4", "1 1", "-70 -30")
            torsos += _leg(f"2_{k}", "0 -.2", "-.2 -.2", "-.4 -.4", "-1 1", "-70 -30")
        else:
            torsos += _leg("1_0", ".2 .2", ".2 .2", ".4 .4", "-1 1", "30 70")
            torsos += _leg("2_0", ".2 -.2", ".2 -.2", ".4 -.4", "1 1", "30 70")
        for joint in ("hip1", "ankle1", "hip2", "ankle2"):
            motors += f'<motor joint="{joint}_{k}" gear="150" ctrllimited="true" ctrlrange="-1 1"/>\n'
    return f"""<mujoco model="ant"><compiler angle="degree" inertiafromgeom="true"/>
<option timestep="0.01" integrator="RK4"/>{_LOOKS}
<default><joint armature="1" damping="1" limited="true"/>
<geom conaffinity="0" condim="3" density="5" friction="1 .5 .5" margin=".01" rgba=".8 .6 .4 1"/></default>
<worldbody>{_LIGHT}{_FLOOR} conaffinity="1" size="40 40 40"/>
<body name="torso_0" pos="0 0 .75"><camera name="track" mode="trackcom" pos="0 -3 .3" xyaxes="1 0 0 0 0 1"/>
<joint name="root" type="free" armature="0" damping="0" limited="false" margin=".01"/>
{torsos}{"</body>" * segments}</worldbody><actuator>{motors}</actuator></mujoco>"""

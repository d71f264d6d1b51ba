"""MAgent2: battles, hunts and harvests of up to a thousand agents on a grid."""

"""What a dump says if it was read in another way: other label orders, another dataset, other box conventions.

A dump that was read wrongly is still well formed; it only scores next to nothing. These modules gather evidence line by
line and say at the end which reading makes sense of it.
"""

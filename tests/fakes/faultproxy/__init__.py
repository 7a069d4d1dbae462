"""A proxy between a client and an API server that breaks things by a plan.

`plan` says which fault meets which request, purely and from a seed; `proxy` carries it out over
real connections. `proxy.FaultProxy` is where to start.
"""

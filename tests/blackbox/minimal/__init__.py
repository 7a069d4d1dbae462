"""A second DRA driver, as small as one can be: named devices that are a variable in a container.

It shares no code with `driver/` but the messages generated from the kubelet's protocols
(`driver.pb`); the API server it asks through the official client. It is the proof that the suite
asks nothing that only one driver does, and the neighbour of tests that want two drivers.
"""

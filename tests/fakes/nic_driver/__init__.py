"""A DRA driver of network cards that a test runs inside itself, at real kubelets.

The test says which cards there are, under which PCIe roots, and reads each call of a kubelet. The
driver refuses a claim whose card another claim still holds, so a double allocation is an event of
the pod at once. It shares no code with `driver.kubeletplugin` but the kubelet's messages.
"""

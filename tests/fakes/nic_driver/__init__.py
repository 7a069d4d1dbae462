"""A DRA driver of NICs that a test runs inside itself, at real kubelets.

The test gives the NICs, with their PCIe roots, and reads each call of a kubelet. The driver refuses
a claim whose NIC is still prepared for another, so a double allocation is an event of the pod at
once. It shares no code with `driver.kubeletplugin` but the kubelet's messages.
"""

"""An event that is never set: to wait for a time on a clock."""

import threading

NEVER = threading.Event()

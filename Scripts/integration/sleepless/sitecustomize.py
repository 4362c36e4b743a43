"""Shortens the producer script's one-second sleep, so that it runs untouched and in seconds; all other sleeps stay."""
import os
import time

_sleep = time.sleep
_pause = float(os.environ["PRODUCER_PAUSE"])
time.sleep = lambda seconds: _sleep(_pause if seconds == 1 else seconds)

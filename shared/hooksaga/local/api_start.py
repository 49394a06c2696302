"""Start of the process of the API: `python -m hooksaga.local.api_start CHANNEL LISTENING`, two descriptors.

Only `hooksaga up` runs it (api_process.py). Signals are ignored before anything else is imported, which takes a second:
the parent gets them too, and says when to stop.
"""

import signal
import sys


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    from hooksaga.local.api_child import serve

    serve(int(sys.argv[1]), int(sys.argv[2]))


if __name__ == "__main__":
    main()

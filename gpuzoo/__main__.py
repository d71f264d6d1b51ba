"""``python -m gpuzoo`` is the command ``gpuzoo``."""

from gpuzoo.tools.cli import main

if __name__ == "__main__":
    main()

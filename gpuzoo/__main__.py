"""``python -m gpuzoo`` is the command ``gpuzoo``."""

from gpuzoo.cli import main

if __name__ == "__main__":
    main()

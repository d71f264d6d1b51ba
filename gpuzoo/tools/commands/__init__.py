"""The subcommands of ``gpuzoo``, a module each: their options and what they print."""

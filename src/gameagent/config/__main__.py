"""`python -m gameagent.config …` is the command `gameagent …`."""

from gameagent.config.cli import main

if __name__ == "__main__":
    main()

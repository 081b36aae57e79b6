"""`python -m hoicli` is the `hoicli` command."""

from hoicli.cli import main

if __name__ == "__main__":
    main()

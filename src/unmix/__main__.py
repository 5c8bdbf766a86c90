"""`python -m unmix`: the command line, where its script is not on the path."""

from unmix.cli.main import main

if __name__ == "__main__":
    main()

"""Every reader of hoicli under attack: what there is to read, how it is broken, and what must hold all the same.

readers.py lists everything that reads; mutations.py breaks bytes and structures; judge.py runs a command line on the
result and says what is wrong with what it did; campaign.py does so in child processes with bounds of memory and time.

    python -m tests.hostile --minutes 10 [--only NAME]      prints a table; a case it names can be run again alone
    python -m tests.hostile --case NAME:NUMBER              and leaves its files behind
"""

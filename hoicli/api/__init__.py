"""The ten functions that `import hoicli` offers: what the commands do, from paths, records or arrays."""

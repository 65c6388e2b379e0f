"""What servers reach: the ceilings with measured efficiency, and an interval."""

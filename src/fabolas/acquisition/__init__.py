"""What an evaluation is worth: functions of a batch of points in the cube."""

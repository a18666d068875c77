"""What the page shows, as plain values for JSON: functions of a fitted model that know nothing of HTTP."""

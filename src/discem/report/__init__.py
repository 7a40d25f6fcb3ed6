"""Reports: pictures, evaluations, and the demo."""

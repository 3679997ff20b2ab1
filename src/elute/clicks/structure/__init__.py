"""What a session click model is, mathematically: clicks given the clicks above them, and towers of documents."""

"""What is trained: graded sets, the lists shown of them, learners, trainings of all seeds at once, and kept results."""

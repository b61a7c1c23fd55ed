"""From parsed statements to Spark queries, with every mistake told before anything starts."""

"""Side-by-side benchmarks: streamcore and its peers on one broker, in one sitting, as ratios."""

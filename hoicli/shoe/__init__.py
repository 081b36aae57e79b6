"""SHOE: open-vocabulary predictions scored by how close in meaning they are."""

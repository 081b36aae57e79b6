"""One page to find out why: classes, errors, images and two models side by side, linked, from every prediction."""

"""From predictions and ground truth to mAP and to recall at K, by the published protocols."""

"""From predictions and ground truth to mAP, by the published protocols."""

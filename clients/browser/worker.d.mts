// Imported for its effect: it handles the worker's push messages and clicks.
export {};

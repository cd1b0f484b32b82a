//! The spawner: one process per node that mounts layers and creates sandboxes.

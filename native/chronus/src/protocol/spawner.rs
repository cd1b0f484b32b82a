//! Operations of the spawner.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum SpawnerRequest {
    MountLayer(MountLayer),
    UnmountLayer(UnmountLayer),
    ListLayers {},
    Create(Box<Create>),
    Kill(Kill),
    Shutdown {
        /// Unpins the namespaces too: layers that no sandbox uses are unmounted.
        #[serde(default)]
        release: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MountLayer {
    pub layer_id: String,
    pub meta_path: String,
    pub data_path: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UnmountLayer {
    pub layer_id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Create {
    pub sandbox_id: String,
    pub hostname: String,
    /// Lowest first, 1 to 100.
    pub layers: Vec<String>,
    pub upper_path: String,
    pub work_path: String,
    pub socket_path: String,
    pub output_path: String,
    pub id_base: u32,
    pub id_count: u32,
    pub shm_bytes: u64,
    pub open_files_max: u64,
    pub ptys_max: u32,
    pub inotify_instances_max: u32,
    pub cgroups: CgroupPaths,
    pub services: Vec<ServicePort>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CgroupPaths {
    pub procs: Vec<String>,
    pub commands: String,
    pub oom_file: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServicePort {
    pub name: String,
    pub port: u16,
}

/// Names one process for good: a pid alone may have been given to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Kill {
    pub pid: u32,
    /// Field 22 of `/proc/<pid>/stat`.
    pub start_time: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MountLayerAnswer {
    /// False when it was mounted already.
    pub mounted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListLayersAnswer {
    pub layers: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateAnswer {
    pub pid: u32,
    pub start_time: u64,
}

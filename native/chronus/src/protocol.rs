//! JSON payloads of the chronus protocol (PROTOCOL.md, sections 3 to 6). Unknown keys are errors, but in HELLO.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The one version of the protocol that this chronus speaks.
pub const PROTOCOL_VERSION: u32 = 1;
/// Most bytes of an error's message.
const MESSAGE_BYTES_MAX: usize = 1024;

/// Codes of a failed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    Invalid,
    NotFound,
    Denied,
    Exists,
    NotDirectory,
    IsDirectory,
    NotEmpty,
    DiskQuota,
    TooLarge,
    TooMany,
    Busy,
    Cancelled,
    Deadline,
    AgentKilled,
    Conflict,
    Internal,
}

/// Why an operation failed: the payload of `END {error}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub code: ErrorCode,
    /// Text for people, at most 1,024 bytes.
    pub message: String,
}

impl Failure {
    /// A failure whose message is cut to its bound.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > MESSAGE_BYTES_MAX {
            let end = (0..=MESSAGE_BYTES_MAX)
                .rev()
                .find(|&at| message.is_char_boundary(at))
                .unwrap_or(0);
            message.truncate(end);
        }
        Self { code, message }
    }
}

/// Payload of END.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum End<T> {
    Ok(T),
    Error(Failure),
}

/// The empty object, answer of many operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Empty {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Edge,
    Spawner,
    Init,
    Guest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRange {
    pub min: u32,
    pub max: u32,
}

/// HELLO. Unknown keys are ignored, so that an old init serves a new edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    pub protocol: VersionRange,
    pub role: Role,
    /// Process id in the host's pid namespace, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// 32 hexadecimal digits, random per process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_id: Option<String>,
}

// Operations of the spawner.

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

// Operations of init.

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum InitRequest {
    Exec(Box<Exec>),
    Attach(Attach),
    Commands {},
    Acknowledge(Acknowledge),
    Signal(Signal),
    FileRead(FileRead),
    FileWrite(FileWrite),
    FileList(FileList),
    FileStat(FileStat),
    FileRemove(FileRemove),
    FileMkdir(FileMkdir),
    Shutdown {},
}

/// Whose rights an operation has: a name of the sandbox's `/etc/passwd`, or ids below 65,536.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum User {
    Name(String),
    Ids(UserIds),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserIds {
    pub uid: u16,
    pub gid: u16,
    #[serde(default)]
    pub groups: Vec<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Exec {
    pub action_id: String,
    /// Absent when `more` is set: it then follows as DATA.
    #[serde(default)]
    pub argv: Option<Vec<String>>,
    pub cwd: String,
    /// Absent when `more` is set: it then follows as DATA.
    #[serde(default)]
    pub env: Option<BTreeMap<String, String>>,
    pub user: User,
    pub stdin: bool,
    pub timeout_ms: Option<u64>,
    pub no_new_privs: bool,
    /// All processes of the command end with its first one.
    pub end_tree: bool,
    #[serde(default)]
    pub more: bool,
}

/// What follows an `exec` with `more: true`, as DATA on stream 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecMore {
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Attach {
    pub command_id: String,
    pub stdout_offset: u64,
    pub stderr_offset: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Acknowledge {
    pub command_ids: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Signal {
    pub command_id: String,
    /// 1 to 31.
    pub signal: i32,
    pub tree: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileRead {
    pub path: String,
    pub user: User,
    pub offset: u64,
    pub length: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileWrite {
    pub path: String,
    pub user: User,
    pub mode: u32,
    pub make_parents: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileList {
    pub path: String,
    pub user: User,
    pub entries_max: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileStat {
    pub path: String,
    pub user: User,
    pub follow: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileRemove {
    pub path: String,
    pub user: User,
    pub recursive: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileMkdir {
    pub path: String,
    pub user: User,
    pub mode: u32,
    pub parents: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecAccepted {
    pub command_id: String,
    pub replay: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Exit,
    Signal,
    Timeout,
    Oom,
    Killed,
    AgentKilled,
    StartFailed,
}

/// Bytes that a stream of a command was given, and how many of them are not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamCount {
    pub bytes: u64,
    pub dropped: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outcome {
    pub command_id: String,
    pub action_id: String,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub cause: Cause,
    pub message: Option<String>,
    pub started_at_ms: u64,
    pub ended_at_ms: u64,
    pub cpu_ms: u64,
    pub peak_memory_bytes: Option<u64>,
    pub stdout: StreamCount,
    pub stderr: StreamCount,
    /// Processes of the command were alive when it ended and were not asked to end.
    pub left_running: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandEntry {
    pub command_id: String,
    pub action_id: String,
    pub running: bool,
    pub started_at_ms: u64,
    pub outcome: Option<Outcome>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandsAnswer {
    pub commands: Vec<CommandEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    Device,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Stat {
    pub name: String,
    pub path: String,
    pub kind: FileKind,
    pub size_bytes: u64,
    /// Permission bits, set-user-id and the like included; the kind is not in it.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub mtime_ms: i64,
    pub target: Option<String>,
    /// The name's bytes when they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_base64: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatAnswer {
    pub stat: Stat,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListAnswer {
    pub truncated: bool,
}

/// OPEN of init: a process inside connected to a granted service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum StreamRequest {
    Stream { service: String },
}

/// EVENT.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    #[serde(rename_all = "camelCase")]
    InitEnded {
        sandbox_id: String,
        pid: u32,
        exit_code: Option<i32>,
        signal: Option<i32>,
    },
    CommandEnded {
        outcome: Outcome,
    },
}

//! Operations of init.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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

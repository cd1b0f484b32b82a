//! A classic BPF program from a table of actions per system call.
//!
//! Calls with the same action make ranges, and a binary tree finds the range: about a hundred
//! instructions instead of a thousand, which matters as the kernel translates the program at each `exec`.

use libc::{
    BPF_ABS, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W,
    sock_filter,
};

/// What the filter does with a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Allow,
    /// Fails with this error number; 0 is success without doing anything.
    Fail(u16),
    /// Fails with `error` when the low half of argument `argument` has one of the bits of `mask`.
    FailOnBits {
        argument: u8,
        mask: u32,
        error: u16,
    },
    /// Fails with `error` when the low half of argument `argument` is one of `values`.
    FailOnValues {
        argument: u8,
        values: &'static [u32],
        error: u16,
    },
    /// Fails with `error` unless the low half of argument `argument` is one of `values`.
    FailUnlessValues {
        argument: u8,
        values: &'static [u32],
        error: u16,
    },
}

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
const OFFSET_NUMBER: u32 = 0;
const OFFSET_ARCHITECTURE: u32 = 4;
const OFFSET_ARGUMENTS: u32 = 16;

const RETURN_ALLOW: u32 = 0x7fff_0000;
const RETURN_KILL_PROCESS: u32 = 0x8000_0000;
const RETURN_ERROR: u32 = 0x0005_0000;

/// Compiles `actions`, indexed by number; larger numbers do `beyond`. Other architectures are killed.
pub fn assemble(actions: &[Action], beyond: Action) -> Vec<sock_filter> {
    let mut program = vec![
        load(OFFSET_ARCHITECTURE),
        jump(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0),
        ret(RETURN_KILL_PROCESS),
        load(OFFSET_NUMBER),
    ];
    program.extend(tree(&ranges(actions, beyond)));
    program
}

struct Range {
    first: u32,
    action: Action,
}

fn ranges(actions: &[Action], beyond: Action) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    for (number, &action) in (0_u32..).zip(actions.iter().chain([&beyond])) {
        if ranges.last().is_none_or(|last| last.action != action) {
            ranges.push(Range {
                first: number,
                action,
            });
        }
    }
    ranges
}

fn tree(ranges: &[Range]) -> Vec<sock_filter> {
    if let [only] = ranges {
        return leaf(only.action);
    }
    let (left, right) = ranges.split_at(ranges.len() / 2);
    let below = tree(left);
    let mut program = Vec::new();
    match u8::try_from(below.len()) {
        Ok(skip) => program.push(jump(BPF_JGE, right[0].first, skip, 0)),
        // Too far for a conditional jump, which has eight bits.
        Err(_) => {
            program.push(jump(BPF_JGE, right[0].first, 0, 1));
            let skip = u32::try_from(below.len()).expect("a program is at most 4,096 instructions");
            program.push(instruction(BPF_JMP | BPF_JA, 0, 0, skip));
        }
    }
    program.extend(below);
    program.extend(tree(right));
    program
}

fn leaf(action: Action) -> Vec<sock_filter> {
    match action {
        Action::Allow => vec![ret(RETURN_ALLOW)],
        Action::Fail(error) => vec![fail(error)],
        Action::FailOnBits {
            argument,
            mask,
            error,
        } => vec![
            load_argument(argument),
            jump(BPF_JSET, mask, 1, 0),
            ret(RETURN_ALLOW),
            fail(error),
        ],
        Action::FailOnValues {
            argument,
            values,
            error,
        } => select(argument, values, [ret(RETURN_ALLOW), fail(error)]),
        Action::FailUnlessValues {
            argument,
            values,
            error,
        } => select(argument, values, [fail(error), ret(RETURN_ALLOW)]),
    }
}

/// Goes to the second of `ends` when the argument is one of `values`, else to the first.
fn select(argument: u8, values: &[u32], ends: [sock_filter; 2]) -> Vec<sock_filter> {
    let mut program = vec![load_argument(argument)];
    for (index, &value) in values.iter().enumerate() {
        let skip = u8::try_from(values.len() - index).expect("a short list");
        program.push(jump(BPF_JEQ, value, skip, 0));
    }
    program.extend(ends);
    program
}

fn load_argument(argument: u8) -> sock_filter {
    load(OFFSET_ARGUMENTS + 8 * u32::from(argument))
}

fn load(offset: u32) -> sock_filter {
    instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, offset)
}

fn jump(kind: u32, value: u32, if_true: u8, if_false: u8) -> sock_filter {
    instruction(BPF_JMP | kind | BPF_K, if_true, if_false, value)
}

fn fail(error: u16) -> sock_filter {
    ret(RETURN_ERROR | u32::from(error))
}

fn ret(value: u32) -> sock_filter {
    instruction(BPF_RET | BPF_K, 0, 0, value)
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    let code = u16::try_from(code).expect("operation codes have sixteen bits");
    sock_filter { code, jt, jf, k }
}

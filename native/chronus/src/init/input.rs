//! Input of commands: DATA of stream 0 goes to the pipe as the program reads it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use super::Init;
use super::command::Input;
use super::output::{CommandNumber, Source};
use super::poll::Token;

const READ_BYTES: usize = 65_536;

impl Input {
    pub(super) fn new(pipe: OwnedFd) -> Self {
        Self {
            pipe,
            queue: VecDeque::new(),
            written: 0,
            complete: false,
            polled: false,
        }
    }
}

impl Init {
    pub(super) fn push_input(&mut self, number: CommandNumber, channel: u32, bytes: Vec<u8>) {
        let input = self
            .commands
            .get_mut(number)
            .and_then(|command| command.input.as_mut());
        match input {
            Some(input) if !input.complete => {
                input.queue.push_back((channel, bytes));
                if !input.polled {
                    self.write_input(number);
                }
            }
            // The program closed its input, or somebody completed it: the bytes go nowhere.
            _ => self.consumed(channel, bytes.len()),
        }
    }

    pub(super) fn complete_input(&mut self, number: CommandNumber) {
        let input = self
            .commands
            .get_mut(number)
            .and_then(|command| command.input.as_mut());
        if let Some(input) = input {
            input.complete = true;
            if !input.polled {
                self.write_input(number);
            }
        }
    }

    /// Writes what the pipe takes; the rest waits for the program to read.
    pub(super) fn write_input(&mut self, number: CommandNumber) {
        let mut used = Vec::new();
        let Some(command) = self.commands.get_mut(number) else {
            return;
        };
        let Some(input) = command.input.as_mut() else {
            return;
        };
        let mut closed = false;
        while let Some((channel, bytes)) = input.queue.front() {
            match rustix::io::write(&input.pipe, &bytes[input.written..]) {
                Ok(count) => {
                    used.push((*channel, count));
                    input.written += count;
                    if input.written == bytes.len() {
                        input.queue.pop_front();
                        input.written = 0;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    closed = true;
                    break;
                }
            }
        }
        if closed || (input.complete && input.queue.is_empty()) {
            self.close_input(number);
        } else {
            let wants = !input.queue.is_empty();
            if wants != input.polled {
                input.polled = wants;
                if wants {
                    let token = Token::Stdin(number);
                    // Without it the program would wait for ever; it then sees the end of its input instead.
                    if self
                        .poll
                        .add(input.pipe.as_fd(), token, EventFlags::OUT)
                        .is_err()
                    {
                        self.close_input(number);
                    }
                } else {
                    self.poll.remove(input.pipe.as_fd());
                }
            }
        }
        for (channel, count) in used {
            self.consumed(channel, count);
        }
    }

    /// Closes a command's input; what was not written is dropped.
    pub(super) fn close_input(&mut self, number: CommandNumber) {
        let input = self
            .commands
            .get_mut(number)
            .and_then(|command| command.input.take());
        let Some(input) = input else {
            return;
        };
        let mut skip = input.written;
        for (channel, bytes) in input.queue {
            self.consumed(channel, bytes.len() - std::mem::take(&mut skip));
        }
    }

    /// Reads output once and stores it.
    pub(super) fn read_output(&mut self, number: CommandNumber, source: Source) {
        let Some(command) = self.commands.get_mut(number) else {
            return;
        };
        let pipe = command.output(source);
        let Some(open) = pipe else {
            return;
        };
        let mut buffer = [0; READ_BYTES];
        match rustix::io::read(&*open, &mut buffer) {
            Ok(0) => *pipe = None,
            Ok(count) => self.store.append(number, source, &buffer[..count]),
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => *pipe = None,
        }
        self.mark_readers(number);
    }

    /// Reads what the pipes of a command hold now, however fast it is written to.
    pub(super) fn drain_outputs(&mut self, number: CommandNumber) {
        for source in Source::BOTH {
            let pipe = self
                .commands
                .get_mut(number)
                .map(|command| command.output(source));
            let held = match pipe {
                Some(Some(pipe)) => rustix::io::ioctl_fionread(&*pipe).unwrap_or(0),
                _ => continue,
            };
            let mut left = usize::try_from(held).unwrap_or(0);
            while left > 0 {
                let before = self.store.count(number, source).bytes;
                self.read_output(number, source);
                let count = self.store.count(number, source).bytes - before;
                if count == 0 {
                    break;
                }
                left = left.saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
            }
        }
    }
}

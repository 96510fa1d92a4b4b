//! The marks that programs and launchers put before a line.

use std::{borrow::Cow, sync::LazyLock};

use regex::{Captures, Regex};

/// A line of a log without the marks before its message.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Line<'t> {
    /// The message.
    pub(super) body: Cow<'t, str>,
    /// The marks, without times: lines of one process have the same.
    pub(super) source: String,
    /// The rank by `PyTorch`'s or MPI's own mark.
    pub(super) rank: Option<u32>,
    /// The task by the label of `srun -l`: the rank, if each task is one process.
    pub(super) task: Option<u32>,
    pub(super) node: Option<String>,
    /// Seconds since the begin of a year of 372 days, for comparisons.
    pub(super) time: Option<f64>,
    /// Its level, if it shows one.
    pub(super) level: Option<Level>,
}

/// The level of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// Below that of an error.
    Mild,
    Error,
}

/// The most marks of a line.
const MARKS: usize = 8;

/// One kind of mark. Groups with names say what it shows.
fn marks() -> &'static [Regex] {
    static MARKS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
        // A test has a line for each of them, so they are valid.
        let patterns = [
            // PyTorch since 2.3.
            r"^\[rank(?P<rank>\d+)\]: ?",
            // torchrun --tee: the local rank.
            r"^\[[A-Za-z_]*\d+\]: ?",
            // srun -l.
            r"^ {0,4}(?P<task>\d{1,5}): ",
            // mpirun --tag-output, and Horovod.
            r"^\[(?:\d+,)?(?P<rank>\d+)\]<std(?:err|out)>: ?",
            // Benchmarks that collect the streams of many processes: name [stderr] text.
            r"^[\w.-]+ \[std(?:err|out)\](?: |$)",
            // Ray, and vLLM's processes.
            r"^\((?:[\w.:<>\[\]/-]+ )*(?:rank=(?P<rank>\d+) ?)?(?:pid=\d+)(?:, ip=(?P<node>[\w.:-]+))?(?:, [^)]*)?\) ?",
            r"^\((?:raylet|autoscaler|gcs_server)\) ?",
            // vLLM, SGLang: LEVEL MM-DD HH:MM:SS [file:line] text.
            r"^(?P<level>[A-Z]{4,8}) (?P<mo>\d\d)-(?P<d>\d\d) (?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d(?:\.\d+)?) \[[^\]]+\] ?",
            // glog: E0501 12:00:00.123 4211 file.py:12], also within brackets, with the year and without a leading zero.
            r"^\[?(?P<level>[IWEFC])(?:20\d\d)?(?P<mo>\d{1,2})(?P<d>\d\d) (?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d(?:\.\d+)?) +(?:\d+ )?[^ \]]+\] ?",
            r"^\[(?P<level>[IWEF]) [\w/.]+(?:cpp|h|py):\d+\] ?",
            // TensorFlow and XLA, after the date: E xla/tsl/file.cc:12] text.
            r"^(?P<level>[IWEF]) [\w/.-]+\.(?:cc|cu|cpp|h):\d+\] ?",
            // Dates in brackets, of Python's logging, slurmd and Ray.
            r"^\[\d{4}[-/](?P<mo>\d\d)[-/](?P<d>\d\d)[T _](?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d(?:[.,]\d+)?)(?:Z|[+-]\d\d:?\d\d)?(?: (?P<level>[IWEFC]) \d+ \d+| [\w.-]*)?\](?: - |: ?| |$)?",
            // Dates without them.
            r"^\d{4}[-/](?P<mo>\d\d)[-/](?P<d>\d\d)[T _](?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d(?:[.,]\d+)?)(?:Z|[+-]\d\d:?\d\d)?(?: - |: | +|$)",
            r"^\[(?P<level>DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\] ?",
            r"^(?P<level>DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)(?: +- |:[\w.]+:|: | )",
            r"^(?:- )?(?P<level>DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL) - ",
            // Names of loggers and places in files.
            r"^(?:torch|deepspeed|transformers|accelerate|ray|lightning|pytorch_lightning|vllm|megatron|nemo|root)[a-z0-9_.]*(?: -|:) ",
            r"^\[[\w./-]+(?:\.py|\.cc|\.cpp|\.c|\.cu):\d+(?::\w+)?\] ?",
            // torch.compile: the frame.
            r"^\[\d+/\d+(?:_\d+)?\] ?",
            // Open MPI and UCX: the host and the process.
            r"^\[(?P<node>[A-Za-z][\w.-]*):\d+(?::\d+)*\] ?",
            // pdsh and DeepSpeed: the host. Not `main.py: error`.
            r"^(?P<node>[a-z][a-z0-9-]*\d[a-z0-9-]*): (?:\[|Traceback|  File |[A-Za-z_.]*Error)",
        ];
        patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
    });
    &MARKS
}

/// The text without colours, also without those whose escape character was lost.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    static COLOURS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\x1b\[[0-9;?]*[A-Za-z]|\[(?:\d{1,2}(?:;\d{1,3})*)m").ok());
    COLOURS.as_ref().map_or(Cow::Borrowed(text), |colours| colours.replace_all(text, ""))
}

/// A bar of tqdm before the text: `33%|███▎  | 575/1725 [3:03:39<6:06:20, 19.11s/it]`.
fn without_bar(text: &str) -> &str {
    static BAR: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"^[^|]{0,80}\d+%\|[^|]*\| *\S+ \[[^\]]{0,60}?(?:it/s|s/it|\?it/s|/s)[^\[\]A-Z/]{0,40}\]?")
            .ok()
    });
    let bar = BAR.as_ref().and_then(|bar| bar.find(text));
    bar.map_or(text, |bar| &text[bar.end()..])
}

impl<'t> Line<'t> {
    /// Reads a line.
    pub(super) fn of(text: &'t str) -> Self {
        let plain = plain(text);
        let mut line = Line::default();
        let mut rest = without_bar(&plain);
        for _ in 0..MARKS {
            let Some(mark) = marks().iter().find_map(|mark| mark.captures(rest)) else { break };
            rest = line.take(&mark, rest);
        }
        line.body = match &plain {
            Cow::Borrowed(_) => Cow::Borrowed(&text[text.len() - rest.len()..]),
            Cow::Owned(_) => Cow::Owned(rest.to_owned()),
        };
        line
    }

    /// Takes in one mark. Returns the text after it.
    fn take<'r>(&mut self, mark: &Captures<'_>, text: &'r str) -> &'r str {
        let group = |name| mark.name(name).map(|group| group.as_str());
        let number = |name| group(name).and_then(|digits| digits.parse::<u32>().ok());
        self.rank = self.rank.or(number("rank"));
        self.task = self.task.or(number("task"));
        self.node = self.node.take().or(group("node").map(str::to_owned));
        let level = group("level");
        let level =
            level.map(|level| if level.starts_with(['I', 'W', 'D']) { Level::Mild } else { Level::Error });
        self.level = self.level.or(level);
        let part = |name| Some(f64::from(number(name)?));
        let seconds = group("s").and_then(|digits| digits.replace(',', ".").parse::<f64>().ok());
        if let (Some(month), Some(day), Some(hour), Some(minute), Some(second)) =
            (part("mo"), part("d"), part("h"), part("mi"), seconds)
        {
            self.time =
                self.time.or(Some((((month * 31.0 + day) * 24.0 + hour) * 60.0 + minute) * 60.0 + second));
        } else if group("level").is_none() {
            self.source += mark.get(0).map_or("", |whole| whole.as_str()).trim();
        }
        // The pattern of a host before a colon looks at the text after it.
        let end = match mark.name("node").filter(|node| node.start() == 0) {
            Some(node) => node.end() + 2,
            None => mark.get(0).map_or(0, |whole| whole.end()),
        };
        text.get(end..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("[rank3]: ValueError: x" => ("ValueError: x".to_owned(), Some(3), None, None); "torch")]
    #[test_case("36: [rank36]: StopIteration" => ("StopIteration".to_owned(), Some(36), Some(36), None); "srun and torch")]
    #[test_case("[default3]:  what():  x" => (" what():  x".to_owned(), None, None, None); "a local rank")]
    #[test_case("[1,5]<stderr>: KeyError: 'x'" => ("KeyError: 'x'".to_owned(), Some(5), None, None); "mpirun")]
    #[test_case("[5]<stderr>:KeyError: 'x'" => ("KeyError: 'x'".to_owned(), Some(5), None, None); "horovod")]
    #[test_case("unet.node03.log [stderr] [rank9]: KeyError: 'x'" => ("KeyError: 'x'".to_owned(), Some(9), None, None); "a benchmark")]
    #[test_case("2024-10-09 15:47:38.568412: E xla/tsl/x.cc:1170] x" => ("x".to_owned(), None, None, None); "tensorflow")]
    #[test_case("\u{1b}[36m(RayTrainWorker pid=4211, ip=10.0.0.2)\u{1b}[0m ValueError: x" => ("ValueError: x".to_owned(), None, None, Some("10.0.0.2".to_owned())); "ray")]
    #[test_case("(EngineCore_0 pid=1) ERROR 07-20 10:00:00 [core.py:586] ValueError: x" => ("ValueError: x".to_owned(), None, None, None); "vllm")]
    #[test_case("E0501 12:00:00.123000 4211 torch/x.py:869] failed (exitcode: -9)" => ("failed (exitcode: -9)".to_owned(), None, None, None); "glog")]
    #[test_case("E20261128 04:58:11.757920  4249 ProcessGroupGloo.cpp:137] [Rank 0]: x" => ("[Rank 0]: x".to_owned(), None, None, None); "glog with the year")]
    #[test_case("[rank1]:[E521 13:22:10.386 ProcessGroupNCCL.cpp:694] [Rank 1] Watchdog" => ("[Rank 1] Watchdog".to_owned(), Some(1), None, None); "torch's own")]
    #[test_case("[E ProcessGroupNCCL.cpp:475] Some NCCL" => ("Some NCCL".to_owned(), None, None, None); "an older one")]
    #[test_case("[2024-03-12 02:29:19,601] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: -6)" => ("failed (exitcode: -6)".to_owned(), None, None, None); "logging")]
    #[test_case("2024-03-12 02:29:19 - ERROR - root - x" => ("x".to_owned(), None, None, None); "dashes")]
    #[test_case("[ERROR] x" => ("x".to_owned(), None, None, None); "a level")]
    #[test_case("ERROR:torch.x:failed (exitcode: 1)" => ("failed (exitcode: 1)".to_owned(), None, None, None); "a level and a logger")]
    #[test_case("[launch.py:321:sigkill_handler] x" => ("x".to_owned(), None, None, None); "a place")]
    #[test_case("0: [node17:53890] *** An error occurred in MPI_Bcast" => ("*** An error occurred in MPI_Bcast".to_owned(), None, Some(0), Some("node17".to_owned())); "mpi")]
    #[test_case("(raylet) [2025-02-25 19:42:36,213 E 20 21] x.cc:116: y" => ("x.cc:116: y".to_owned(), None, None, None); "raylet")]
    #[test_case("2024-06-05T01:56:48.959599622Z RuntimeError: x" => ("RuntimeError: x".to_owned(), None, None, None); "a container engine's date")]
    #[test_case("E0731 16:03:52.1 2 x.py:9] [1/0] RuntimeError: x" => ("RuntimeError: x".to_owned(), None, None, None); "torch.compile")]
    #[test_case("worker-1: Traceback (most recent call last):" => ("Traceback (most recent call last):".to_owned(), None, None, Some("worker-1".to_owned())); "pdsh")]
    #[test_case(" 52%|█████▏    | 260/500 [11:57<11:22,  2.84s/it]Traceback (most" => ("Traceback (most".to_owned(), None, None, None); "a bar")]
    #[test_case("main.py: error: x" => ("main.py: error: x".to_owned(), None, None, None); "no host")]
    #[test_case("ValueError: x" => ("ValueError: x".to_owned(), None, None, None); "nothing")]
    fn marks_are_read(text: &str) -> (String, Option<u32>, Option<u32>, Option<String>) {
        let line = Line::of(text);
        (line.body.into_owned(), line.rank, line.task, line.node)
    }

    #[test]
    fn times_of_several_formats_compare() {
        let time = |text: &str| Line::of(text).time.unwrap();
        let formats = [
            "E0501 12:00:00.000 1 x.py:1] x",
            "ERROR 05-01 12:00:01 [x.py:1] x",
            "[2024-05-01 12:00:02,000] [ERROR] x",
            "2024-05-01T12:00:03.5Z x",
            "0: [2024-05-01T12:00:04.123] error: x",
            "[rank1]:[E501 12:00:05.386 P.cpp:694] x",
        ];
        assert!(formats.map(time).is_sorted());
    }

    #[test]
    fn messages_below_an_error_are_mild() {
        use Level::{Error, Mild};
        for (text, level) in [
            ("W0501 12:00:00.1 1 x.py:1] x", Some(Mild)),
            ("W20261128 12:00:00.1 1 x.cpp:1] x", Some(Mild)),
            ("WARNING: x", Some(Mild)),
            ("2024-10-09 15:47:38.568412: W xla/tsl/x.cc:1170] x", Some(Mild)),
            ("[ERROR] x", Some(Error)),
            ("x", None),
        ] {
            assert_eq!(Line::of(text).level, level, "{text}");
        }
    }
}

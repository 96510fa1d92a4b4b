//! Streams a job's logs from one attempt to the next until the job has finished.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use domain::{AttemptNo, AttemptPlace, ClusterName, Job, JobId, Phase, Status};
use futures_util::{StreamExt, stream};
use persistence::Viewer;
use tokio::time::{Instant, sleep};

use super::{
    cursor::Cursor,
    event::LogEvent,
    pace::Pace,
    place,
    selection::{Part, Selection},
    watched::{News, Watched},
};
use crate::{
    auth::Caller,
    http::sse::{self, Permit},
    problem::{Kind, Problem},
    state::App,
};

/// Returns the stream, or 204 if the client has received the event `end`.
pub(super) async fn respond(
    app: &App,
    caller: &Caller,
    job: &Job,
    selection: Selection,
    cursor: Option<Cursor>,
) -> Result<Response, Problem> {
    let newest =
        place::attempt(app, job, selection.task, None).await?.map_or(AttemptNo::FIRST, |place| place.no);
    if job.phase == Phase::Ended && cursor.as_ref().is_some_and(|c| c.is_end && c.attempt >= newest) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let attempt = cursor.as_ref().map(|cursor| cursor.attempt).or(selection.attempt);
    let place = place::attempt(app, job, selection.task, attempt).await?;
    let Some(permit) = Permit::take(&app.followers, ::metrics::gauge!("tao_slurm_log_followers")) else {
        let most = app.limits.log_followers;
        let detail = format!("{most} logs are being followed, the limit of this process. Try again.");
        return Err(Problem::unavailable(Kind::LogsBusy, detail));
    };
    let follower = Follower::new(app, caller.viewer(), job, selection, place, cursor, permit);
    let id = job.id;
    let events = stream::unfold(follower, |mut follower| async {
        let events = follower.next().await?;
        Some((stream::iter(events), follower))
    });
    let events = events.flatten().map(move |(event, cursor)| event.to_sse(id, cursor.as_ref()));
    Ok(sse::respond(app, caller.standing, events))
}

/// What can still happen to the followed attempt.
#[derive(Debug, Clone)]
enum Outlook {
    /// It can still write.
    Alive,
    /// A later attempt exists.
    Over {
        newest: AttemptPlace,
    },
    Ended(Status),
    Deleted,
}

/// The follower of one job's logs.
struct Follower {
    app: App,
    viewer: Viewer,
    job: JobId,
    cluster: ClusterName,
    selection: Selection,
    watched: Option<Watched>,
    outlook: Outlook,
    /// The number of reads without news since the attempt is over.
    settled: u32,
    pace: Pace,
    is_stale: bool,
    /// The last `waiting` message.
    waiting: String,
    over: bool,
    until: Instant,
    _permit: Permit,
}

type Sent = Vec<(LogEvent, Option<Cursor>)>;

impl Follower {
    fn new(
        app: &App,
        viewer: Viewer,
        job: &Job,
        selection: Selection,
        place: Option<AttemptPlace>,
        cursor: Option<Cursor>,
        permit: Permit,
    ) -> Self {
        let mut watched = place.map(|place| Watched::new(place, selection.which.clone(), selection.part));
        if let (Some(watched), Some(cursor)) = (&mut watched, cursor) {
            watched.resume(&cursor.files);
        }
        Self {
            app: app.clone(),
            viewer,
            job: job.id,
            cluster: job.cluster.clone(),
            selection,
            watched,
            outlook: Outlook::Alive,
            settled: 0,
            pace: Pace::AtOnce,
            is_stale: false,
            waiting: String::new(),
            over: false,
            until: Instant::now() + app.limits.follow_for,
            _permit: permit,
        }
    }

    /// The next events; none at the end of the stream. Clients reconnect if there was no `end`.
    async fn next(&mut self) -> Option<Sent> {
        let stop = self.app.stop.clone();
        while !self.over && Instant::now() < self.until {
            let events = stop.run_until_cancelled(self.round()).await?;
            if !events.is_empty() {
                return Some(events);
            }
        }
        None
    }

    /// One read.
    async fn round(&mut self) -> Sent {
        let is_closing = !matches!(self.outlook, Outlook::Alive);
        let pace = if is_closing && !matches!(self.pace, Pace::AtOnce | Pace::Failing(_)) {
            Pace::Grown
        } else {
            self.pace
        };
        sleep(pace.wait(self.app.log_reads.elapsed(), self.app.limits.log_tick)).await;
        let mut events = Sent::new();
        if self.watched.is_some() {
            self.look_at_logs(&mut events).await;
        } else {
            self.pace = self.pace.silent();
        }
        // After the logs, so that followers that read them together stay together; the next read of the logs then begins
        // with current knowledge of the job.
        if !self.over && matches!(self.pace, Pace::Silent(_) | Pace::Failing(_)) {
            self.look_at_job(&mut events).await;
        }
        if self.watched.is_none() {
            self.conclude(&mut events).await;
        }
        events
    }

    async fn look_at_logs(&mut self, events: &mut Sent) {
        let Some(watched) = &self.watched else { return };
        let questions = watched.questions(self.job, self.app.limits.log_bytes, self.pace.is_idle());
        let questions = match questions {
            Ok(questions) => questions,
            Err(error) => {
                tracing::error!(%error, job.id = %self.job, "a job's log paths are not valid");
                self.over = true;
                return;
            }
        };
        if questions.is_empty() {
            self.digest(News::default(), events).await;
            return;
        }
        match self.app.log_reads.together(&self.cluster, &questions).await {
            Ok(answers) => {
                if std::mem::take(&mut self.is_stale) {
                    events.push((LogEvent::live(), None));
                }
                let last = self.settled > 0;
                let Some(watched) = &mut self.watched else { return };
                let news = watched.take(&answers, last);
                self.digest(news, events).await;
            }
            Err(unavailable) => {
                if !std::mem::replace(&mut self.is_stale, true) {
                    events.push((LogEvent::stale(&unavailable.detail), None));
                }
                self.pace = self.pace.failing();
            }
        }
    }

    /// Decides when to read again, and whether this read was the last.
    async fn digest(&mut self, news: News, events: &mut Sent) {
        for file in &news.unreadable {
            self.remark(format!("The cluster's login user may not read `{file}`."), events);
        }
        let (is_closing, was_settled) = (!matches!(self.outlook, Outlook::Alive), self.settled > 0);
        let (is_news, more) = (!news.events.is_empty() || news.found, news.more);
        let at_once = is_news && (more || news.found);
        events.extend(news.events.into_iter().map(|(event, cursor)| (event, Some(cursor))));
        self.pace = match (at_once, is_news) {
            (true, _) => Pace::AtOnce,
            (false, true) => Pace::Grown,
            // Wait even if the cluster claims that more is there: otherwise a wrong answer would be a busy loop.
            (false, false) => self.pace.silent(),
        };
        if !is_closing || more || news.found || news.doubtful {
            self.settled = 0;
        } else if was_settled {
            self.conclude(events).await;
        } else if !is_news {
            self.settled += 1;
        }
    }

    /// The attempt writes nothing more: goes on to the next attempt, or ends the stream.
    async fn conclude(&mut self, events: &mut Sent) {
        self.settled = 0;
        let current = self.watched.as_ref().map(|watched| watched.place.no);
        let last = Cursor { is_end: true, ..self.cursor() };
        let (status, detail) = match self.outlook.clone() {
            Outlook::Alive => return,
            Outlook::Over { newest } => {
                self.go_on(newest, events).await;
                return;
            }
            Outlook::Deleted => (None, "The job was deleted.".to_owned()),
            Outlook::Ended(status) if self.watched.as_ref().is_some_and(Watched::has_seen) => {
                (Some(status), "The job has finished, and its log was read to the end.".to_owned())
            }
            Outlook::Ended(status) => {
                (Some(status), "The job has finished without writing this log.".to_owned())
            }
        };
        events.push((LogEvent::end(current, status, detail), Some(last)));
        self.over = true;
    }

    async fn go_on(&mut self, newest: AttemptPlace, events: &mut Sent) {
        let Some(previous) = self.watched.as_ref().map(|watched| watched.place.no) else { return };
        // Not every attempt carries the task of an array.
        let next = if self.selection.task.is_some() { newest.no } else { previous.next() };
        let next = match self.app.store.find_attempt_place(self.job, next, self.selection.task).await {
            Ok(next) => next.unwrap_or(newest),
            Err(error) => {
                tracing::warn!(%error, job.id = %self.job, "cannot read the next attempt of a followed job");
                return;
            }
        };
        let event = LogEvent::next_attempt(previous, &next);
        let whole = Part::Bytes { offset: 0, limit: u64::MAX };
        self.watched = Some(Watched::new(next, self.selection.which.clone(), whole));
        events.push((event, Some(self.cursor())));
        self.outlook = Outlook::Alive;
        self.pace = Pace::AtOnce;
        self.waiting.clear();
    }

    /// Reads the job. If the database does not answer, the follower's knowledge stays as it is.
    async fn look_at_job(&mut self, events: &mut Sent) {
        let job = match self.app.store.find_job(self.job, &self.viewer).await {
            Ok(Some(job)) => job,
            Ok(None) => {
                self.outlook = Outlook::Deleted;
                return;
            }
            Err(error) => {
                tracing::warn!(%error, job.id = %self.job, "cannot read a followed job");
                return;
            }
        };
        let newest = match place::attempt(&self.app, &job, self.selection.task, None).await {
            Ok(newest) => newest,
            Err(problem) => {
                tracing::warn!(?problem, job.id = %self.job, "cannot read the attempt of a followed job");
                return;
            }
        };
        match (&mut self.watched, &newest) {
            (None, Some(newest)) => {
                let (which, part) = (self.selection.which.clone(), self.selection.part);
                self.watched = Some(Watched::new(newest.clone(), which, part));
                self.pace = Pace::AtOnce;
            }
            // The location of the logs depends on the Slurm id, which may be new.
            (Some(watched), Some(newest)) if watched.place.no == newest.no => watched.place = newest.clone(),
            (Some(watched), Some(_)) if watched.place.slurm_id.is_none() => {
                let stored =
                    self.app.store.find_attempt_place(self.job, watched.place.no, self.selection.task).await;
                watched.place = stored.ok().flatten().unwrap_or_else(|| watched.place.clone());
            }
            _ => {}
        }
        let current = self.watched.as_ref().map(|watched| watched.place.no);
        self.outlook = match newest {
            Some(newest) if current.is_some_and(|current| current < newest.no) => Outlook::Over { newest },
            _ if job.phase == Phase::Ended => Outlook::Ended(job.status),
            _ => Outlook::Alive,
        };
        let nothing_yet = !self.watched.as_ref().is_some_and(Watched::has_seen);
        if nothing_yet && matches!(self.outlook, Outlook::Alive) {
            self.remark(place::why_no_log(&job, current, self.selection.which.role.as_ref()), events);
        }
    }

    /// Sends the reason for a pause, once.
    fn remark(&mut self, detail: String, events: &mut Sent) {
        if self.waiting != detail {
            self.waiting.clone_from(&detail);
            events.push((LogEvent::waiting(detail), None));
        }
    }

    fn cursor(&self) -> Cursor {
        let nothing = Cursor { attempt: AttemptNo::FIRST, files: Vec::new(), is_end: false };
        self.watched.as_ref().map_or(nothing, Watched::cursor)
    }
}

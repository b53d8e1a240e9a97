use std::collections::VecDeque;

use super::algorithm::Mark;

/// What has been given back to one quota, as far as later refunds must know of it.
///
/// A refund lowers everything that was charged after it, so an older charge's distance from being
/// refilled is only changed by refunds of charges older still. Those are told apart here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refunds {
    /// In all, in the rule's units.
    total: u64,
    /// Counts the charges that may be given back.
    charges: u64,
    /// Of the latest refunds, which charge they were of and how much they gave.
    recent: VecDeque<(u64, u64)>,
}

/// How many refunds are told apart. Those before them count against every charge, which only
/// makes less come back; this many calls that end out of order at one limiter are rare.
const RECENT: usize = 64;

impl Refunds {
    /// Marks the charge just made, which left `state`.
    pub(crate) fn mark(&mut self, state: u64) -> Mark {
        self.charges += 1;
        Mark {
            state,
            charge: self.charges,
            returned: self.total,
        }
    }

    /// What was given back since the charge `mark` and may be of charges before it.
    pub(crate) fn before(&self, mark: &Mark) -> u64 {
        let later = self.recent.iter().filter(|(of, _)| *of >= mark.charge);
        let later: u64 = later.map(|(_, given)| given).sum();
        self.total.wrapping_sub(mark.returned).saturating_sub(later)
    }

    /// Notes a refund.
    pub(crate) fn gave(&mut self, mark: &Mark, given: u64) {
        if given == 0 {
            return;
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((mark.charge, given));
        self.total = self.total.wrapping_add(given);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refunds_of_later_charges_do_not_count_against_earlier_ones() {
        let mut refunds = Refunds::default();
        let (first, second) = (refunds.mark(10), refunds.mark(20));
        refunds.gave(&second, 7);
        assert_eq!(refunds.before(&first), 0, "the later charge was on top");
        refunds.gave(&first, 3);
        assert_eq!(refunds.before(&second), 3, "the earlier one was below");
    }

    #[test]
    fn refunds_forgotten_count_against_everyone() {
        let mut refunds = Refunds::default();
        let first = refunds.mark(1);
        for _ in 0..=RECENT {
            let later = refunds.mark(1);
            refunds.gave(&later, 1);
        }
        assert_eq!(refunds.before(&first), 1, "one is no longer told apart");
    }
}

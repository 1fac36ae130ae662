//! Stored words and what people call them.

use super::Lang;
use crate::console::looks::Look;

/// A stored word as it is shown: its look and its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::console) struct Word {
    /// How it looks.
    pub(in crate::console) look: Look,
    zh: &'static str,
    en: &'static str,
}

impl Word {
    /// Its name.
    pub(in crate::console) fn name(self, lang: Lang) -> &'static str {
        lang.pick(self.zh, self.en)
    }
}

use Look::{Done, NotYet, Running, Trouble, Unknown, Waiting};

/// Stored word, look, 中文, English. A word means the same wherever it is stored.
const WORDS: &[(&str, Look, &str, &str)] = &[
    // Orders.
    ("DRAFT", NotYet, "草稿", "Draft"),
    ("UNDER_REVIEW", Waiting, "审核中", "Under review"),
    ("REVIEW_REJECTED", Trouble, "已驳回", "Rejected"),
    ("WAIT_PAY", Waiting, "待付款", "To be paid"),
    ("PAID", Done, "已付款", "Paid"),
    ("NO_NEED_PAY", Done, "无需付款", "Nothing to pay"),
    ("CANCELLED", NotYet, "已取消", "Cancelled"),
    // Tasks.
    ("PENDING", Waiting, "待执行", "Pending"),
    ("RUNNING", Running, "执行中", "Running"),
    ("SUCCESS", Done, "成功", "Success"),
    ("FAILED", Trouble, "失败", "Failed"),
    // Locks.
    ("RESERVED", Waiting, "预占", "Reserved"),
    ("ACTIVE", Done, "占用", "Active"),
    ("RELEASED", NotYet, "已释放", "Released"),
    // Versions.
    ("BUILDING", Running, "构建中", "Building"),
    ("BUILT", Running, "已构建", "Built"),
    ("PUBLISHED", Done, "已发布", "Published"),
    ("BUILD_FAILED", Trouble, "构建失败", "Build failed"),
    // Lines.
    ("PAYABLE", Done, "应付", "Payable"),
    ("UNQUALIFIED", NotYet, "不合格", "Unqualified"),
    ("REVIEW_APPROVED", Done, "审核通过", "Approved"),
    ("PAY_FAILED", Trouble, "付款失败", "Payment failed"),
    ("UNQUALIFIED_EFFECTIVE", Done, "不合格已生效", "Unqualified, in effect"),
    // Business records.
    ("UNPAID", NotYet, "未付", "Unpaid"),
    ("PAYMENT_REVIEW", Running, "付款审核", "Payment review"),
    ("PARTLY_PAID", Waiting, "部分已付", "Partly paid"),
    // Deliveries.
    ("WAIT_PROCESS", Waiting, "待发送", "To be sent"),
    ("FAIL", Trouble, "对方拒绝", "Refused"),
    ("UNKNOWN", Unknown, "结果未知", "Unknown"),
    ("SKIPPED", NotYet, "未发送", "Not sent"),
    // Batches, pushes and payments.
    ("WAIT_PUSH", Waiting, "待推送", "To be pushed"),
    ("PUSHING", Running, "推送中", "Pushing"),
    ("PUSH_SUCCESS", Running, "对方已受理", "Accepted, no result yet"),
    ("PUSH_PARTIAL_SUCCESS", Waiting, "部分已受理", "Accepted in part"),
    ("WAIT_DATA_FIX", Trouble, "等人改数据", "Needs a data fix"),
    ("PUSH_FAIL", Trouble, "推送失败", "Push failed"),
    ("NOT_PUSHED", NotYet, "未推送", "Not pushed"),
    ("PUSHED", Running, "已推送", "Pushed"),
    ("PUSH_PARTIAL", Waiting, "部分已推送", "Pushed in part"),
    ("PUSH_FAILED", Trouble, "推送失败", "Push failed"),
    ("SENDING", Running, "发送中", "Sending"),
    ("ACCEPTED", Running, "对方已受理", "Accepted"),
    ("REFUSED", Trouble, "被拒绝", "Refused"),
    ("REJECTED", Trouble, "被拒绝", "Rejected"),
    ("NULL", NotYet, "未开始", "Not begun"),
    ("PAYING", Running, "付款中", "Being paid"),
    // Sessions, batches of work, phases.
    ("EDITING", Waiting, "选单中", "Editing"),
    ("SUBMITTING", Running, "提交中", "Submitting"),
    ("PUBLISHED_LOCK_SYNCING", Running, "已发布，激活占用中", "Published, locks syncing"),
    ("SUBMIT_FAILED", Trouble, "提交失败", "Submission failed"),
    ("INIT", Waiting, "待执行", "To be done"),
    ("DONE", Done, "完成", "Done"),
    ("SUPERSEDED", NotYet, "被新版取代", "Superseded"),
    ("PREPARE", Running, "准备", "Prepare"),
    ("BILL_UPDATE", Running, "明细生效", "Lines"),
    ("FINALIZE", Running, "主单生效", "Finalize"),
    ("LOCK_RELEASE", Running, "释放占用", "Lock release"),
    ("REFRESH_SHARD", Running, "状态刷新", "Refresh"),
    // Reconciliation.
    ("QUEUED", Waiting, "排队", "Queued"),
    ("DISPATCHED", Running, "已派发", "Dispatched"),
    ("COMPLETED", Done, "完成", "Completed"),
    ("PARTIAL", Trouble, "有遗留", "Partial"),
    ("STALLED", Trouble, "停滞", "Stalled"),
    // Reviews.
    ("IN_REVIEW", Waiting, "审核中", "In review"),
    ("APPROVED", Done, "通过", "Approved"),
    ("WAITING", NotYet, "未到", "Not yet"),
    ("DOING", Waiting, "进行中", "Under way"),
    ("PASSED", Done, "通过", "Passed"),
    ("WITHDRAWN", NotYet, "已撤回", "Withdrawn"),
    ("NO_START", NotYet, "未开始", "Not started"),
    ("CLOSED", NotYet, "已关闭", "Closed"),
    // Audit.
    ("ASKED", Running, "已提出", "Asked"),
];

/// A stored word; one that nobody listed is shown as it is, its look unknown.
pub(in crate::console) fn word(stored: &str) -> Option<Word> {
    let found = WORDS.iter().find(|(word, ..)| *word == stored);
    found.map(|(_, look, zh, en)| Word { look: *look, zh, en })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_that_is_stored_has_a_name_and_none_has_two() {
        let mut seen = std::collections::BTreeSet::new();
        for (stored, ..) in WORDS {
            assert!(seen.insert(stored), "{stored} stands there twice");
        }
        for code in [10, 20, 30, 40, 50, 55, 90] {
            let name = counterfoil_payment::order_view::order_status(code);
            assert!(word(name).is_some(), "{name}");
        }
        for machine in counterfoil_payment::states::MACHINES {
            for (_, name) in machine.states {
                assert!(word(name).is_some(), "{}: {name}", machine.name);
            }
        }
        for status in counterfoil_task::TaskStatus::ALL {
            assert!(word(&status.to_string()).is_some(), "{status}");
        }
        assert_eq!(word("SOMETHING_ELSE"), None);
    }
}

//! The words that samples are made of. Nobody is meant by any of them.

pub(super) const BILL_COLUMNS: [&str; 12] = [
    "station_id",
    "bill_yearmonth",
    "contract_rent",
    "actual_rent",
    "pre_rent",
    "project_company_id",
    "partner_id",
    "customer_name",
    "customer_account",
    "bank_name",
    "small_bill_amount",
    "partner_bill_amount",
];

/// Project companies and their organisations.
pub(super) const COMPANIES: [(&str, &str); 4] = [
    ("鲁东户用光伏有限公司", "ORG-LD"),
    ("冀南新能源有限公司", "ORG-JN"),
    ("豫北阳光电力有限公司", "ORG-YB"),
    ("皖中绿能有限公司", "ORG-WZ"),
];

/// Partners and their retry policies.
pub(super) const PARTNERS: [(&str, &str); 5] = [
    ("向阳安装工程有限公司", "definite"),
    ("晴川能源服务有限公司", "definite"),
    ("禾光农业科技有限公司", "idempotent"),
    ("丰穗电力运维有限公司", "never"),
    ("青禾屋顶资产有限公司", "definite"),
];

/// What station ids begin with.
pub(super) const REGIONS: [&str; 8] =
    ["LD01", "JN01", "YB01", "WZ01", "LD02", "JN02", "YB02", "WZ02"];

/// Banks and their codes.
pub(super) const BANKS: [(&str, &str); 6] = [
    ("中国农业银行", "103100000026"),
    ("中国工商银行", "102100099996"),
    ("中国建设银行", "105100000017"),
    ("中国银行", "104100000004"),
    ("中国邮政储蓄银行", "403100000004"),
    ("农村信用社", "402100000018"),
];

pub(super) const SURNAMES: [&str; 40] = [
    "王", "李", "张", "刘", "陈", "杨", "赵", "黄", "周", "吴", "徐", "孙", "胡", "朱", "高", "林",
    "何", "郭", "马", "罗", "梁", "宋", "郑", "谢", "韩", "唐", "冯", "于", "董", "萧", "程", "曹",
    "袁", "邓", "许", "傅", "沈", "曾", "彭", "欧阳",
];

/// Given names of one character; two of them make one too.
pub(super) const SHORT_NAMES: [&str; 20] = [
    "伟", "芳", "娜", "敏", "静", "强", "磊", "军", "洋", "勇", "艳", "杰", "娟", "涛", "明", "超",
    "霞", "平", "刚", "梅",
];

/// Given names of two characters.
pub(super) const LONG_NAMES: [&str; 30] = [
    "建国", "秀英", "桂兰", "玉兰", "秀兰", "海燕", "志强", "春梅", "国庆", "红梅", "凤英", "树林",
    "德胜", "长江", "满仓", "丰收", "来福", "金宝", "银环", "翠花", "月娥", "守田", "立春", "小满",
    "秋生", "冬梅", "永贵", "长顺", "喜旺", "福生",
];

//! Every page, in both languages, empty and with something in it.

use counterfoil_account::Role;
use counterfoil_e2e::on_every_database;

use crate::house::House;

const PAGES: [&str; 15] = [
    "/console",
    "/console?span=day",
    "/console?span=week",
    "/console/stuck",
    "/console/orders",
    "/console/bills",
    "/console/tasks",
    "/console/reviews",
    "/console/deliveries",
    "/console/batches",
    "/console/reconciliation",
    "/console/rules",
    "/console/incidents",
    "/console/accounts",
    "/console/audit",
];

on_every_database! {
    async fn every_page_answers_in_both_languages_empty_and_full(app: TestApp) {
        let house = House::open(app).await;
        let person = house.person("chief", Role::Admin, None).await;
        let chinese = person.cookie.replace("counterfoil_lang=en", "counterfoil_lang=zh");
        for path in PAGES {
            let answer = person.get(path).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            assert!(answer.body.contains("<html lang=\"en\">"), "{path}");
        }
        let order = house.order().await;
        let plan = house.plan(&order).await;
        let task = house.app.value("SELECT MIN(task_code) AS code FROM fi_async_task").await;
        let mut paths: Vec<String> = PAGES.iter().map(|path| (*path).to_owned()).collect();
        paths.push(format!("/console/orders/{order}"));
        paths.push(format!("/console/orders/{order}/lines"));
        paths.push(format!("/console/orders/{order}/cancel"));
        paths.push(format!("/console/orders/{order}/payment"));
        paths.push(format!("/console/orders/{order}/repair"));
        paths.push(format!("/console/orders/{order}/revise"));
        paths.push(format!("/console/tasks/{task}"));
        paths.push(format!("/console/tasks/{task}/rerun"));
        paths.push(format!("/console/tasks/{task}/cancel"));
        paths.push(format!("/console/reviews/{plan}"));
        paths.push("/console/reviews?of=all".to_owned());
        paths.push("/console/bills/S1/202609".to_owned());
        paths.push("/console/me".to_owned());
        for path in paths {
            for (cookie, lang) in [(&person.cookie, "en"), (&chinese, "zh-CN")] {
                let answer = house.get(&path, cookie).await;
                assert_eq!(answer.status, 200, "{path}: {}", answer.body);
                assert!(answer.body.contains(&format!("<html lang=\"{lang}\">")), "{path}");
            }
        }
        house.close().await;
    }

    async fn an_order_says_first_where_it_is_and_what_it_waits_for(app: TestApp) {
        let house = House::open(app).await;
        let person = house.person("viewer", Role::Viewer, None).await;
        let order = house.order().await;
        let page = person.get(&format!("/console/orders/{order}")).await.body;
        assert!(page.contains("is under review and waits for the reviewers of plan"), "{page}");
        assert!(page.contains("Your role may look; ask an operator."), "{page}");
        let chinese = person.cookie.replace("counterfoil_lang=en", "counterfoil_lang=zh");
        let page = house.get(&format!("/console/orders/{order}"), &chinese).await.body;
        assert!(page.contains("等待：审核"), "{page}");
        assert!(page.contains("的审核人"), "{page}");
        house.close().await;
    }

    async fn any_id_leads_to_its_page(app: TestApp) {
        let house = House::open(app).await;
        let person = house.person("viewer", Role::Viewer, None).await;
        let order = house.order().await;
        let task = house.app.value("SELECT MIN(task_code) AS code FROM fi_async_task").await;
        let table = [
            (order.clone(), format!("/console/orders/{order}")),
            (task.clone(), format!("/console/tasks/{}", task.replace(':', "%3A"))),
            ("S1 2026-09".into(), "/console/bills/S1/202609".into()),
        ];
        for (typed, expected) in table {
            let typed = typed.replace(' ', "+").replace(':', "%3A");
            let answer = person.get(&format!("/console/find?q={typed}")).await;
            assert_eq!((answer.status, answer.header("location")), (303, expected.as_str()));
        }
        let unknown = person.get("/console/find?q=nothing-of-ours").await;
        assert_eq!(unknown.status, 200);
        assert!(unknown.body.contains("is called so"), "{}", unknown.body);
        house.close().await;
    }

    async fn what_is_not_there_is_said_on_a_page_of_its_own(app: TestApp) {
        let house = House::open(app).await;
        let person = house.person("viewer", Role::Viewer, None).await;
        let paths = [
            "/console/orders/404",
            "/console/tasks/RIPSB:none",
            "/console/reviews/404",
            "/console/deliveries/404",
            "/console/batches/404",
            "/console/reconciliation/404",
            "/console/bills/S404/202609",
        ];
        for path in paths {
            let answer = person.get(path).await;
            assert_eq!(answer.status, 404, "{path}: {}", answer.body);
            assert!(answer.body.contains("Back to the overview"), "{path}");
        }
        assert_eq!(person.get("/console/bills/S1/2026-13").await.status, 422);
        house.close().await;
    }

    async fn lists_are_walked_page_by_page_by_a_cursor(app: TestApp) {
        let house = House::open(app).await;
        let person = house.person("viewer", Role::Viewer, None).await;
        let mut tx = house.app.db.begin().await.unwrap();
        for n in 1..=120 {
            tx.execute(counterfoil_db::Query::built(format!(
                "INSERT INTO fi_resident_income_payment_order (id, order_no) VALUES ({n}, 'N{n}')"
            )))
            .await
            .unwrap();
        }
        tx.commit("test").await.unwrap();
        let (mut path, mut seen) = ("/console/orders".to_owned(), 0);
        for _ in 0..3 {
            let page = person.get(&path).await.body;
            seen += page.matches("data-label=\"Order\"").count();
            let next = page.split_once("rel=\"next\" href=\"").map(|(_, rest)| rest);
            path = next
                .and_then(|rest| rest.split('"').next())
                .unwrap_or_default()
                .to_owned();
        }
        assert_eq!((seen, path.as_str()), (120, ""));
        house.close().await;
    }
}

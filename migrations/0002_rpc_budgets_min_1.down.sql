drop table rpc_budgets;

"""The client's names for the operations of the OpenAPI document: one row each.

A new operation without a row stops `make client`. A resource belongs to the client that holds its
credential: `Partner` an app secret, `Account` an access token, `Public` none.
"""

from __future__ import annotations

from collections.abc import Mapping

RESOURCES: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "Partner": {
        "partner": {"readPartnerConfig": "read_config"},
        "payment_settings": {"readPaymentSettings": "read", "replacePaymentSettings": "replace"},
        "client_sessions": {"createClientSession": "create", "revokeClientSession": "revoke"},
        "accounts": {
            "createAccount": "create",
            "listAccounts": "list",
            "readAccount": "read",
            "changeAccount": "change",
            "readAccountBalances": "read_balances",
            "readAccountCapabilities": "read_capabilities",
            "setAccountHandle": "set_handle",
            "setAccountSettlement": "set_settlement",
        },
        "wallets": {
            "addWallet": "add",
            "listWallets": "list",
            "createWalletChallenge": "create_challenge",
            "removeWallet": "remove",
        },
        "verifications": {"startVerification": "start", "listVerifications": "list"},
        "bank_accounts": {
            "activateBankAccountCapability": "activate",
            "readBankAccountRequirements": "read_requirements",
            "addBankAccount": "add",
            "listBankAccounts": "list",
        },
        "onramps": {
            "readOnrampRequirements": "read_requirements",
            "addOnramp": "add",
            "listOnramps": "list",
            "readOnrampInstructions": "read_instructions",
            "listOnrampTransactions": "list_transactions",
        },
        "vaults": {
            "listVaults": "list",
            "provisionVault": "provision",
            "readVaultPolicy": "read_policy",
            "replaceVaultPolicy": "replace_policy",
            "readVaultYieldSettings": "read_yield_settings",
            "replaceVaultYieldSettings": "replace_yield_settings",
        },
        "mandates": {
            "createMandate": "create",
            "listMandates": "list",
            "revokeMandate": "revoke",
        },
        "deposits": {
            "issueDepositAddress": "issue_address",
            "listDepositAddresses": "list_addresses",
            "checkDeposits": "check",
            "returnDeposit": "send_back",
            "listDeposits": "list",
        },
        "payments": {
            "createPayment": "",  # its three intents, in VARIANTS
            "listPayments": "list",
            "readPayment": "read",
            "cancelPayment": "cancel",
            "readPaymentReceipts": "list_receipts",
            "reconcilePayment": "reconcile",
            "createRefund": "refund",
            "listRefunds": "list_refunds",
        },
        "reports": {
            "readBalanceReport": "list_balances",
            "readTransactionReport": "list_transactions",
            "readPayoutReport": "list_payouts",
        },
        "sessions": {
            "readSession": "read",
            "flagDispute": "flag_dispute",
            "resolveDispute": "resolve_dispute",
        },
        "webhooks": {
            "createWebhook": "create",
            "listWebhooks": "list",
            "readWebhook": "read",
            "changeWebhook": "change",
            "rotateWebhookSecret": "rotate_secret",
            "testWebhook": "test",
            "recoverWebhook": "recover",
            "listWebhookDeliveries": "list_deliveries",
            "retryWebhookDelivery": "retry_delivery",
        },
        "events": {"listEvents": "list", "readEvent": "read", "resendEvent": "resend"},
        "requests": {"listRequests": "list"},
        "audit": {"listAuditEntries": "list"},
        "sandbox": {
            "readSandbox": "read",
            "fundSandboxAccount": "fund",
            "decideSandboxKyc": "decide_kyc",
            "depositAtSandboxBank": "deposit_at_bank",
            "mineSandboxBlocks": "mine_blocks",
            "advanceSandboxClock": "advance_clock",
            "triggerSandboxEvent": "trigger_event",
            "failSandboxDependency": "fail_dependency",
            "decideSandboxPayout": "decide_payout",
            "decideSandboxOrder": "decide_order",
            "reorgSandboxChain": "reorg_chain",
            "runSandboxWork": "run",
            "makeSandboxTransfer": "transfer",
        },
        "health": {"checkHealth": "check", "checkReadiness": "check_readiness"},
        "legacy": {
            "registerLegacyUser": "register",
            "readLegacyUser": "get_user",
            "readLegacyAddressOwner": "get_user_by_address",
            "addLegacyAddress": "add_address",
            "checkLegacyUsername": "check_username",
            "setLegacyUsername": "update_username",
            "setLegacyPreferences": "update_preferences",
            "resolveLegacyAddress": "resolve",
            "readLegacyKyc": "is_kyc_done",
            "generateLegacyAddress": "generate",
            "createLegacyDepositAddress": "get_deposit_address",
            "createLegacyQuote": "quote",
            "readLegacyTransfer": "read_transfer",
            "verifyLegacyTransfer": "verify_transfer",
            "settleLegacyQuote": "settle",
            "listLegacyChains": "supported_chains",
            "readLegacyBalance": "get_balance",
            "readLegacyBalances": "get_balances",
            "readLegacyTransaction": "get_transaction",
            "listLegacyTransactions": "get_transactions",
            "deployLegacyRoleModule": "deploy_role_module",
        },
    },
    "Account": {
        "own_account": {"readOwnAccount": "read"},
        "own_deposits": {
            "issueOwnDepositAddress": "issue_address",
            "listOwnDepositAddresses": "list_addresses",
        },
        "own_payments": {
            "createOwnPayment": "create",
            "listOwnPayments": "list",
            "readOwnPayment": "",  # as its recipient and as its payer, in VARIANTS
        },
        "own_options": {
            "createOption": "create",
            "listOptions": "list",
            "readOption": "read",
            "authorizeOption": "authorize",
            "refreshOption": "refresh",
        },
    },
    "Public": {
        "public_sessions": {"exchangeClientSession": "exchange"},
        "public_links": {"exchangePaymentLink": "exchange"},
        "public_payments": {
            "createPublicPayment": "create",
            "readPublicPayment": "read",
            "readPublicPaymentState": "read_state",
            "listPublicMethods": "list_methods",
        },
        "public_options": {
            "createPublicOption": "create",
            "readPublicOption": "read",
            "selectPublicOption": "select",
            "refreshPublicOption": "refresh",
            "submitPublicTransaction": "submit_transaction",
        },
    },
}
"""The client, the resource, the operation, and the method's name."""

ATTRIBUTE_PREFIXES = {"Partner": "", "Account": "own_", "Public": "public_"}
"""The prefixes of resources that their client's attribute omits: `own_payments` is `payments`."""

VARIANTS: Mapping[str, Mapping[str, tuple[str, str, str]]] = {
    "createPayment": {
        "receive": ("CreatePayment", "CreatedPayment", "Create a Payment that receives."),
        "send": ("CreateSend", "Payment", "Create a Payment that sends from an account's vault."),
        "collect": ("CreateCollect", "Payment", "Create a Payment that collects by a mandate."),
    },
    "readOwnPayment": {
        "read": ("", "RecipientPayment", "Read a Payment that the own account receives."),
        "read_as_payer": ("paymentSecretHeader", "PayerPayment", "Read a Payment to be paid."),
    },
}
"""Operations whose response depends on the request: a method for each variant, with its body or the
credential that it adds, its response, and its sentence."""

// Pays from a wallet in this browser (EIP-1193, EIP-6963). Amounts are integers throughout. What
// the wallet would sign is compared with the page and with the service before it is asked to sign.
"use strict";

const payer = (() => {
  const MAX_WALLETS = 8;
  const MAX_NAME_CHARACTERS = 40;
  const PROGRAM_TIMEOUT_MS = 30_000;
  const PAYER_TIMEOUT_MS = 300_000;
  const FOR_THE_PAYER = [
    "eth_requestAccounts", "wallet_switchEthereumChain", "wallet_addEthereumChain",
  ];
  const INJECTION_MS = 3_000;
  const DECLINED = 4001;
  const UNKNOWN_CHAIN = 4902; // EIP-3326
  const PENDING = -32002; // the wallet still asks the payer something else
  const TRANSFER = "0xa9059cbb";
  const BALANCE_OF = "0x70a08231";
  const DECIMALS = "0x313ce567";
  const ADDRESS = /^0x[0-9a-f]{40}$/i;
  const HASH = /^0x[0-9a-f]{64}$/i;
  const NUMBER = /^0x[0-9a-f]{1,64}$/i;

  // Why nothing was sent: the name of the message.
  class Stop extends Error {}

  const INJECTED = "injected"; // the key of a wallet that does not announce itself
  const wallets = new Map();
  let said = "";
  let isBusy = false;
  // The last transfer that a wallet sent, until the page shows it. It is locked, so that it is not
  // sent twice, as long as the service would lock it, which knows of it or has not been reached.
  let sent = null;

  const readRequest = () => {
    const place = document.getElementById("wallets");
    if (!place) return null;
    const { payment, secret, chainId, token, to, amount, decimals, lockMs } = place.dataset;
    const { blockNumber, blockHash, addChain } = place.dataset;
    return {
      payment, secret, token, to, lockMs: Number(lockMs), blockNumber: BigInt(blockNumber), blockHash,
      chainId: BigInt(chainId), amount: BigInt(amount), decimals: BigInt(decimals),
      addChain: addChain ? JSON.parse(addChain) : null,
    };
  };

  // A name in Latin letters must not change the order of an Arabic sentence.
  const isolate = (name) => `\u2068${name}\u2069`;

  const show = () => {
    const place = document.getElementById("wallets");
    if (!place || wallets.size === 0) return;
    const seen = [...document.querySelectorAll(".transfers code")].map((code) => code.textContent);
    // An amount that still remains after it has arrived may be sent as well.
    if (sent && seen.includes(sent.hash)) sent = said = null;
    if (sent?.isLocked && Date.now() >= sent.lockedUntil) unlock();
    place.hidden = false;
    place.querySelector("ul").replaceChildren(...[...wallets.values()].map((wallet) => {
      const button = document.createElement("button");
      button.type = "button";
      button.disabled = isBusy || isLocked();
      button.textContent = wallet.name === null
        ? place.dataset.injected
        : place.dataset.payWith.replace("%(wallet)s", () => isolate(wallet.name));
      button.addEventListener("click", () => { pay(wallet); });
      const item = document.createElement("li");
      item.append(button);
      return item;
    }));
    // The other ways to pay would send it again, too.
    for (const way of place.closest(".ways").querySelectorAll(".way")) way.hidden = isLocked();
    const text = said ? place.querySelector(`[data-word="${said}"]`).textContent : "";
    place.querySelector("[role=status]").textContent = text;
  };

  const say = (word) => {
    said = word;
    show();
  };

  const isLocked = () => sent !== null && sent.isLocked;

  // It may have been dropped or replaced, or be on its way still: the payer looks.
  const unlock = () => {
    sent.isLocked = false;
    said = "unseen";
  };

  const pay = async ({ ask, send }) => {
    if (isBusy || isLocked()) return;
    isBusy = true;
    let isAsked = false;
    try {
      const request = readRequest();
      say("connect");
      const [from] = await ask("eth_requestAccounts");
      if (!ADDRESS.test(from)) throw new Stop("failed");
      await useChain(ask, request);
      say("check");
      await requireNetwork(ask, request);
      await requireToken(ask, request, from);
      const option = await choose(request, from);
      // The payer may have changed the network meanwhile.
      await requireNetwork(ask, request);
      say("sign");
      isAsked = true;
      const signed = send({
        from, to: request.token, value: "0x0", data: encodeTransfer(request),
        chainId: encodeNumber(request.chainId),
      });
      // An answer that comes later still counts.
      await within(PAYER_TIMEOUT_MS, signed.then((hash) => report(request, option, hash)));
    } catch (error) {
      say(explain(error, isAsked));
      checkout.update();
    } finally {
      isBusy = false;
      show();
    }
  };

  const report = async (request, option, hash) => {
    const transfer = {
      hash: String(hash).toLowerCase(), isLocked: true, isKnown: false,
      lockedUntil: Date.now() + request.lockMs,
    };
    sent = transfer;
    say("sent");
    setTimeout(show, request.lockMs);
    try {
      if (HASH.test(transfer.hash)) {
        await submit(request, option, transfer.hash);
        transfer.isKnown = true;
      }
    } catch {
      // It is found without the hint, and stays locked here.
    }
    checkout.update();
  };

  const explain = (error, isAsked) => {
    if (error instanceof Stop) return error.message;
    if (codeOf(error) === DECLINED) return "declined";
    if (isAsked) return "unclear";
    return codeOf(error) === PENDING ? "pending" : "failed";
  };

  // Some wallets wrap the error that they mean.
  const codeOf = (error) => error?.data?.originalError?.code ?? error?.code;

  // A wallet may never answer, such as one whose window was closed.
  const within = (timeoutMs, promise) => Promise.race([
    promise, new Promise((_, reject) => { setTimeout(reject, timeoutMs); }),
  ]);

  const useChain = async (ask, { chainId, addChain }) => {
    if (readNumber(await ask("eth_chainId")) === chainId) return;
    const change = () => ask("wallet_switchEthereumChain", { chainId: encodeNumber(chainId) });
    try {
      say("switch");
      await change().catch(async (error) => {
        if (codeOf(error) !== UNKNOWN_CHAIN || !addChain) throw error;
        say("add");
        await ask("wallet_addEthereumChain", addChain);
        if (readNumber(await ask("eth_chainId")) === chainId) return; // some change to it at once
        say("switch");
        await change();
      });
    } catch (error) {
      throw [DECLINED, PENDING].includes(codeOf(error)) ? error : new Stop("network");
    }
    await requireChain(ask, chainId);
  };

  const requireChain = async (ask, chainId) => {
    if (readNumber(await ask("eth_chainId")) !== chainId) throw new Stop("network");
  };

  // Another network may have the same number, such as a test network: it has other blocks.
  const requireNetwork = async (ask, { chainId, blockNumber, blockHash }) => {
    await requireChain(ask, chainId);
    const block = await ask("eth_getBlockByNumber", encodeNumber(blockNumber), false);
    if (String(block?.hash).toLowerCase() !== blockHash.toLowerCase()) throw new Stop("elsewhere");
  };

  // The wallet's network has this token, and its address has enough of it.
  const requireToken = async (ask, { token, amount, decimals }, from) => {
    const read = async (data) => readNumber(await ask("eth_call", { to: token, data }, "latest"));
    if (await read(DECIMALS) !== decimals) throw new Stop("token");
    const balance = await read(BALANCE_OF + pad(from.slice(2)));
    if (balance === null) throw new Stop("token");
    if (balance < amount) throw new Stop("funds");
  };

  // A direct option, selected: the service says again what to send, and accepts no other choice
  // while the transfer is in transit.
  const choose = async (request, from) => {
    const { option } = await call(request, "", { providerCode: "direct", payerAddress: from.toLowerCase() });
    const { execution } = option;
    const isSame = execution?.type === "transfer"
      && BigInt(execution.chainId) === request.chainId
      && BigInt(execution.amountAtomic) === request.amount
      && execution.tokenAddress === request.token && execution.to === request.to;
    if (!isSame) throw new Stop("changed");
    await call(request, `/${option.id}/select`);
    return option;
  };

  // A hint where to look. The transfer is also found without it, only later.
  const submit = (request, option, transactionHash) => call(
    request, `/${option.id}/submissions`, { transactionHash, chainId: Number(request.chainId) },
  );

  const call = (request, path, body = {}) => within(
    PROGRAM_TIMEOUT_MS, post(request, path, body),
  );

  const post = async ({ payment, secret }, path, body) => {
    const answer = await fetch(`../v2/public/payments/${payment}/options${path}`, {
      method: "POST", body: JSON.stringify(body), cache: "no-store", credentials: "omit",
      headers: { Authorization: `Bearer ${secret}`, "Content-Type": "application/json" },
      referrerPolicy: "no-referrer",
    });
    if (!answer.ok) throw new Stop("changed");
    return answer.json();
  };

  const encodeTransfer = ({ to, amount }) => {
    if (!ADDRESS.test(to) || amount <= 0n) throw new Stop("failed");
    return TRANSFER + pad(to.slice(2)) + pad(amount.toString(16));
  };

  const encodeNumber = (number) => `0x${number.toString(16)}`;
  const pad = (digits) => digits.toLowerCase().padStart(64, "0");
  const readNumber = (text) => (NUMBER.test(text) ? BigInt(text) : null);

  const makeWallet = (name, provider) => {
    const request = async (method, params) => provider.request({ method, params });
    return {
      name,
      ask: (method, ...params) => within(
        FOR_THE_PAYER.includes(method) ? PAYER_TIMEOUT_MS : PROGRAM_TIMEOUT_MS,
        request(method, params),
      ),
      send: (transaction) => request("eth_sendTransaction", [transaction]),
    };
  };

  // Wallets announce themselves, also those that load later. What they say is only text.
  window.addEventListener("eip6963:announceProvider", ({ detail }) => {
    const { info, provider } = detail ?? {};
    if (!info?.uuid || !info.name || !provider?.request) return;
    wallets.delete(INJECTED); // most probably this one
    if (wallets.size >= MAX_WALLETS) return;
    const name = String(info.name).slice(0, MAX_NAME_CHARACTERS);
    wallets.set(String(info.uuid), makeWallet(name, provider));
    show();
  });

  // Browsers of older wallets inject one provider and announce nothing.
  const findInjected = () => {
    if (wallets.size > 0 || typeof window.ethereum?.request !== "function") return;
    wallets.set(INJECTED, makeWallet(null, window.ethereum));
    show();
  };

  checkout.onShown(() => {
    // A service that knows the transfer and does not ask for another has locked it itself.
    if (sent?.isLocked && sent.isKnown && !readRequest()) unlock();
    show();
  });
  window.dispatchEvent(new Event("eip6963:requestProvider"));
  document.addEventListener("DOMContentLoaded", findInjected);
  window.addEventListener("ethereum#initialized", findInjected);
  setTimeout(findInjected, INJECTION_MS);
  return { makeWallet, wallets, pay, say, Stop, DECLINED };
})();

// Pays from a wallet in this browser (EIP-6963, EIP-1193). Amounts are integers throughout. What
// the wallet would sign is compared with the page and with the service before it is asked to sign.
"use strict";

(() => {
  const MAX_WALLETS = 8;
  const MAX_NAME_CHARACTERS = 40;
  const DECLINED = 4001;
  const TRANSFER = "0xa9059cbb";
  const BALANCE_OF = "0x70a08231";
  const DECIMALS = "0x313ce567";
  const ADDRESS = /^0x[0-9a-f]{40}$/i;
  const HASH = /^0x[0-9a-f]{64}$/i;
  const NUMBER = /^0x[0-9a-f]{1,64}$/i;

  // Why nothing was sent: the name of the message.
  class Stop extends Error {}

  const wallets = new Map();
  let said = "";
  let isBusy = false;
  let sent = null; // the hash of a transfer that the page does not show yet

  const readRequest = () => {
    const place = document.getElementById("wallets");
    if (!place) return null;
    const { payment, secret, chainId, token, to, amount, decimals } = place.dataset;
    return {
      payment, secret, token, to,
      chainId: BigInt(chainId), amount: BigInt(amount), decimals: BigInt(decimals),
    };
  };

  const show = () => {
    const place = document.getElementById("wallets");
    if (!place || wallets.size === 0) return;
    const seen = [...document.querySelectorAll(".transfers code")].map((code) => code.textContent);
    // An amount that still remains after it has arrived may be sent as well.
    if (sent !== null && seen.includes(sent)) sent = said = null;
    place.hidden = false;
    place.querySelector("ul").replaceChildren(...[...wallets.values()].map((wallet) => {
      const button = document.createElement("button");
      button.type = "button";
      button.disabled = isBusy || sent !== null;
      button.textContent = wallet.name;
      button.addEventListener("click", () => { pay(wallet); });
      const item = document.createElement("li");
      item.append(button);
      return item;
    }));
    const text = said ? place.querySelector(`[data-word="${said}"]`).textContent : "";
    place.querySelector("[role=status]").textContent = text;
  };

  const say = (word) => {
    said = word;
    show();
  };

  const pay = async ({ ask }) => {
    if (isBusy || sent !== null) return;
    isBusy = true;
    let isAsked = false;
    try {
      const request = readRequest();
      say("connect");
      const [from] = await ask("eth_requestAccounts");
      if (!ADDRESS.test(from)) throw new Stop("failed");
      await useChain(ask, request.chainId);
      say("check");
      await requireToken(ask, request, from);
      const option = await choose(request, from);
      // The payer may have changed the network meanwhile.
      await requireChain(ask, request.chainId);
      say("sign");
      isAsked = true;
      const hash = await ask("eth_sendTransaction", {
        from, to: request.token, value: "0x0", data: encodeTransfer(request),
        chainId: encodeNumber(request.chainId),
      });
      sent = String(hash).toLowerCase();
      say("sent");
      if (HASH.test(sent)) await submit(request, option, sent);
    } catch (error) {
      if (sent === null) say(explain(error, isAsked));
    } finally {
      isBusy = false;
      show();
    }
    checkout.update();
  };

  const explain = (error, isAsked) => {
    if (error instanceof Stop) return error.message;
    if (error?.code === DECLINED) return "declined";
    return isAsked ? "unclear" : "failed";
  };

  const useChain = async (ask, chainId) => {
    if (readNumber(await ask("eth_chainId")) === chainId) return;
    say("switch");
    try {
      await ask("wallet_switchEthereumChain", { chainId: encodeNumber(chainId) });
    } catch (error) {
      throw error?.code === DECLINED ? error : new Stop("network");
    }
    await requireChain(ask, chainId);
  };

  const requireChain = async (ask, chainId) => {
    if (readNumber(await ask("eth_chainId")) !== chainId) throw new Stop("network");
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

  const call = async ({ payment, secret }, path, body = {}) => {
    const answer = await fetch(`/v2/public/payments/${payment}/options${path}`, {
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

  // Wallets announce themselves, also those that load later. What they say is only text.
  window.addEventListener("eip6963:announceProvider", ({ detail }) => {
    const { info, provider } = detail ?? {};
    if (!info?.uuid || !info.name || !provider?.request || wallets.size >= MAX_WALLETS) return;
    wallets.set(String(info.uuid), {
      name: String(info.name).slice(0, MAX_NAME_CHARACTERS),
      ask: (method, ...params) => provider.request({ method, params }),
    });
    show();
  });
  checkout.onShown(show);
  window.dispatchEvent(new Event("eip6963:requestProvider"));
})();

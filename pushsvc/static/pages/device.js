// /test-device/<channel>#<invitation>: subscribes this browser, and makes it a test device.
// Its script element names the channel.
{
  const { channel } = document.currentScript.dataset;
  const here = `/test-device/${channel}`;
  const button = document.getElementById("join");
  const state = document.getElementById("state");
  const problem = document.getElementById("problem");

  const join = async () => {
    const push = pushsvc.init({ channel, serviceWorker: `${here}/sw.js` });
    const { subscriptionId } = await push.subscribe();
    const answer = await fetch(`${here}/join`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        invitation: location.hash.slice(1),
        subscription_id: subscriptionId,
      }),
    });
    const said = await answer.json();
    if (!answer.ok) throw new Error(said.detail);
    return said.name;
  };

  button.addEventListener("click", async () => {
    button.disabled = true;
    problem.hidden = true;
    state.textContent = "Waiting for the browser’s push service…";
    try {
      const name = await join();
      state.textContent = `This browser is the test device “${name}” now. You can close the page.`;
      state.classList.add("good");
      button.hidden = true;
    } catch (error) {
      state.textContent = "";
      problem.textContent = error.message;
      problem.hidden = false;
    }
    button.disabled = false;
  });
}

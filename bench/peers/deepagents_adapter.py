#!/usr/bin/env python3
"""Deep Agents as a harness of the benchmark: one graph, a thread per session."""
import asyncio
import os
import sqlite3

import common
from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend

NO_COMPACTION = {"max_input_tokens": 10_000_000}
LONG_RUNS = {"recursion_limit": 100_000}


def make_agent(args, checkpointer=None):
    shared = dict(model="fake", api_key="k", streaming=args.stream, max_retries=0, timeout=600, profile=NO_COMPACTION)
    if args.api == "anthropic":
        from langchain_anthropic import ChatAnthropic

        model = ChatAnthropic(base_url=args.base_url, max_tokens=1024, **shared)
    else:
        from langchain_openai import ChatOpenAI

        model = ChatOpenAI(base_url=args.base_url + "/v1", use_responses_api=False, **shared)
    backend = FilesystemBackend(root_dir=args.workdir, virtual_mode=True)
    return create_deep_agent(model=model, backend=backend, checkpointer=checkpointer)


def thread(name):
    return {**LONG_RUNS, "configurable": {"thread_id": name}}


def question(text):
    return {"messages": [{"role": "user", "content": text}]}


def run(args):
    result = make_agent(args).invoke(question(args.prompt), LONG_RUNS)
    print(result["messages"][-1].content)
    return result


def dump(args):
    for message in run(args)["messages"]:
        print(type(message).__name__, common.line(message.content, args.clip))


async def start_all(agent, args):
    runs = [agent.ainvoke(question(prompt), thread(f"t{i}")) for i, prompt in enumerate(common.prompts(args))]
    return await common.all_at_once(runs)


def many(args):
    seconds, errors = asyncio.run(start_all(make_agent(args), args))
    common.say(wall_s=seconds, errors=errors)


def hold(args):
    from langgraph.checkpoint.memory import InMemorySaver

    async def go():
        agent = make_agent(args, InMemorySaver())
        _, errors = await start_all(agent, args)
        await common.hold(errors)

    asyncio.run(go())


def history(count):
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    messages = []
    for i in range(count // 3 + 1):
        call = {"name": "read_file", "args": {"file_path": f"/f{i}.txt"}, "id": f"c{i}"}
        messages.append(HumanMessage(f"question {i} " + "lorem ipsum " * 20, id=f"h{i}"))
        messages.append(AIMessage("", id=f"a{i}", tool_calls=[call]))
        messages.append(ToolMessage("result line " * 40, tool_call_id=f"c{i}", id=f"t{i}"))
    return messages[:count]


def stored(args):
    from langgraph.checkpoint.sqlite import SqliteSaver

    connection = sqlite3.connect(os.path.join(args.dir, "session.db"), check_same_thread=False)
    return make_agent(args, SqliteSaver(connection))


def save(args):
    os.makedirs(args.dir, exist_ok=True)
    agent = stored(args)

    def add(messages):
        return common.timed(lambda: agent.update_state(thread("t"), {"messages": messages}, as_node="model"))[0]

    save_s = add(history(args.messages))
    append_s = add([("user", "one more")])
    common.say(save_s=save_s, append_s=append_s, bytes=common.folder_bytes(args.dir))


def restore(args):
    agent = stored(args)
    restore_s, state = common.timed(lambda: agent.get_state(thread("t")))
    common.say(restore_s=restore_s, messages=len(state.values["messages"]))


if __name__ == "__main__":
    given = common.options()
    globals()[given.command](given)

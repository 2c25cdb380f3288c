#!/usr/bin/env python3
"""AgentScope as a harness of the benchmark: one Agent and Toolkit per session, one shared model client."""
import asyncio
import json
import os

import common
from agentscope.agent import Agent, ReActConfig
from agentscope.message import AssistantMsg, TextBlock, ToolCallBlock, ToolResultBlock, UserMsg
from agentscope.permission import PermissionContext, PermissionMode
from agentscope.state import AgentState
from agentscope.tool import Bash, Edit, Glob, Grep, Read, Toolkit, Write

NO_COMPACTION_TOKENS = 10_000_000


def make_model(args):
    shared = dict(
        model="fake",
        stream=args.stream,
        max_retries=0,
        context_size=NO_COMPACTION_TOKENS,
        client_kwargs={"timeout": 600, "max_retries": 0},
    )
    if args.api == "anthropic":
        from agentscope.credential import AnthropicCredential
        from agentscope.model import AnthropicChatModel

        return AnthropicChatModel(credential=AnthropicCredential(api_key="k", base_url=args.base_url), **shared)
    from agentscope.credential import OpenAICredential
    from agentscope.model import OpenAIChatModel

    return OpenAIChatModel(credential=OpenAICredential(api_key="k", base_url=args.base_url + "/v1"), **shared)


def make_agent(model, state=None):
    state = state or AgentState(permission_context=PermissionContext(mode=PermissionMode.BYPASS))
    toolkit = Toolkit(tools=[Bash(), Grep(), Glob(), Read(), Write(), Edit()])
    config = ReActConfig(max_iters=100_000)
    return Agent(
        name="bench",
        system_prompt="You are a helpful assistant.",
        model=model,
        state=state,
        toolkit=toolkit,
        react_config=config,
    )


def user(text):
    return UserMsg(name="user", content=text)


async def run(args):
    agent = make_agent(make_model(args))
    reply = await agent.reply(user(args.prompt))
    print("".join(block.text for block in reply.content if block.type == "text"))
    return agent


async def dump(args):
    agent = await run(args)
    for message in agent.state.context:
        for block in message.content:
            print(message.name, block.type, common.line(block, args.clip))


async def start_all(args):
    model = make_model(args)
    agents = [make_agent(model) for _ in common.prompts(args)] or [make_agent(model)]
    replies = [agent.reply(user(prompt)) for agent, prompt in zip(agents, common.prompts(args))]
    return agents, await common.all_at_once(replies)


async def many(args):
    _, (seconds, errors) = await start_all(args)
    common.say(wall_s=seconds, errors=errors)


async def hold(args):
    agents, (_, errors) = await start_all(args)
    await common.hold(errors)
    return agents


def history(count):
    """Questions, and answers that hold a call with its result, as this harness stores them."""
    messages = []
    for i in range(count // 2 + 1):
        call = ToolCallBlock(id=f"c{i}", name="Read", input=json.dumps({"file_path": f"/f{i}.txt"}))
        output = [TextBlock(text="result line " * 40)]
        result = ToolResultBlock(id=f"c{i}", name="Read", output=output, state="success")
        messages.append(user(f"question {i} " + "lorem ipsum " * 20))
        messages.append(AssistantMsg(name="bench", content=[call, result]))
    return messages[:count]


async def save(args):
    os.makedirs(args.dir, exist_ok=True)
    state = AgentState()
    state.context = history(args.messages)

    def write():
        with open(os.path.join(args.dir, "session.json"), "w") as file:
            file.write(state.model_dump_json())

    save_s, _ = common.timed(write)
    state.context.append(user("one more"))
    append_s, _ = common.timed(write)
    common.say(save_s=save_s, append_s=append_s, bytes=common.folder_bytes(args.dir))


async def restore(args):
    model = make_model(args)
    make_agent(model)

    def read():
        with open(os.path.join(args.dir, "session.json")) as file:
            return make_agent(model, AgentState.model_validate_json(file.read()))

    restore_s, agent = common.timed(read)
    common.say(restore_s=restore_s, messages=len(agent.state.context))


if __name__ == "__main__":
    given = common.options()
    asyncio.run(globals()[given.command](given))

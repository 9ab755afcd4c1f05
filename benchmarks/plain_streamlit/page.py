"""The named alternative: a chat as Streamlit's own tutorial writes it, on the same provider, without documents."""

import os

import streamlit as st
from openai import OpenAI

client = OpenAI(api_key="none", base_url=os.environ["OPENAI_BASE_URL"])

if "messages" not in st.session_state:
    st.session_state.messages = []

for message in st.session_state.messages:
    with st.chat_message(message["role"]):
        st.markdown(message["content"])

if prompt := st.chat_input("Ask"):
    st.session_state.messages.append({"role": "user", "content": prompt})
    with st.chat_message("user"):
        st.markdown(prompt)
    with st.chat_message("assistant"):
        stream = client.chat.completions.create(model="gpt-4o", messages=st.session_state.messages, stream=True)
        response = st.write_stream(stream)
    st.session_state.messages.append({"role": "assistant", "content": response})

FROM python:3.12-slim
RUN pip install --no-cache-dir "gpuzoo[cpu,train,render]"

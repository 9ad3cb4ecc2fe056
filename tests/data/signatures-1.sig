likewise signatures 1
{"family": "MinHash", "kind": "signatures", "scheme": "fast", "seed": 1, "shape": [3, 8], "slots": 8, "type": "<u4"}
Xy<¬ÌgÕÍ?¢İB }—|Ãñ÷$½µX¿ù]qÚÜtüÍ?jèºj }—J Ê›ì”&µX¿ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿmèLÍéP•ãÿ¤noe8ñ—